const sameForAll = (phrase) => ({ oneFreeCall: phrase, freeCalls: phrase });
const PHRASES = {
    en: {
        free: 'Free',
        perCall: (price) => `${price} per call`,
        oneFreeCall: (count) => `${count} free call`,
        freeCalls: (count) => `${count} free calls`,
    },
    'zh-TW': { free: '免費', perCall: (price) => `每次呼叫 ${price}`, ...sameForAll((count) => `${count} 次免費呼叫`) },
    'zh-CN': { free: '免费', perCall: (price) => `每次调用 ${price}`, ...sameForAll((count) => `${count} 次免费调用`) },
    ja: {
        free: '無料',
        perCall: (price) => `1回の呼び出しにつき ${price}`,
        ...sameForAll((count) => `無料呼び出し ${count} 回`),
    },
    ko: { free: '무료', perCall: (price) => `호출당 ${price}`, ...sameForAll((count) => `무료 호출 ${count}회`) },
    es: {
        free: 'Gratis',
        perCall: (price) => `${price} por llamada`,
        oneFreeCall: (count) => `${count} llamada gratuita`,
        freeCalls: (count) => `${count} llamadas gratuitas`,
    },
    de: {
        free: 'Kostenlos',
        perCall: (price) => `${price} pro Aufruf`,
        oneFreeCall: (count) => `${count} kostenloser Aufruf`,
        freeCalls: (count) => `${count} kostenlose Aufrufe`,
    },
    fr: {
        free: 'Gratuit',
        perCall: (price) => `${price} par appel`,
        oneFreeCall: (count) => `${count} appel gratuit`,
        freeCalls: (count) => `${count} appels gratuits`,
    },
};
// Formats are cached: building one takes 20 µs or more, formatting a number with it less than 1 µs.
const formats = new Map();
function formatsOf(language) {
    let found = formats.get(language);
    if (found === undefined) {
        found = {
            usd: new Intl.NumberFormat(language, {
                style: 'currency',
                currency: 'USD',
                // '$' in every language; 'symbol' would write 'US$' or '$US' in some of them.
                currencyDisplay: 'narrowSymbol',
                minimumFractionDigits: 2,
                maximumFractionDigits: 6,
                trailingZeroDisplay: 'stripIfInteger',
            }),
            count: new Intl.NumberFormat(language),
        };
        formats.set(language, found);
    }
    return found;
}
/** '$0.002 per call', or 'Free', in the given language. Whole dollars have no decimals, other prices two to six. */
export function priceLabel(priceMicros, language) {
    const { free, perCall } = PHRASES[language];
    return priceMicros === 0 ? free : perCall(formatsOf(language).usd.format(priceMicros / 1_000_000));
}
/** '100 free calls' in the given language. `freeCalls` must be at least 1. */
export function freeCallsLabel(freeCalls, language) {
    const { oneFreeCall, freeCalls: many } = PHRASES[language];
    return (freeCalls === 1 ? oneFreeCall : many)(formatsOf(language).count.format(freeCalls));
}
//# sourceMappingURL=labels.js.map