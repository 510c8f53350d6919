import type { Language } from './languages.ts';
import type { Price } from './price.ts';

/** The phrases of one language. Their parameters are formatted numbers. */
type Phrases = {
  readonly free: string;
  readonly perCall: (price: string) => string;
  /** For a call priced by use. The service may report less than `price`, too. */
  readonly upTo: (price: string, max: string) => string;
  /** The lowest of several prices, in the words of `perCall`. */
  readonly from: (label: string) => string;
  readonly oneFreeCall: (count: string) => string;
  readonly freeCalls: (count: string) => string;
};

const sameForAll = (phrase: (count: string) => string) => ({ oneFreeCall: phrase, freeCalls: phrase });

const PHRASES: Readonly<Record<Language, Phrases>> = {
  en: {
    free: 'Free',
    perCall: (price) => `${price} per call`,
    upTo: (price, max) => `${price} up to ${max} per call`,
    from: (label) => `from ${label}`,
    oneFreeCall: (count) => `${count} free call`,
    freeCalls: (count) => `${count} free calls`,
  },
  'zh-TW': {
    free: '免費',
    perCall: (price) => `每次呼叫 ${price}`,
    upTo: (price, max) => `每次呼叫 ${price}，最高 ${max}`,
    from: (label) => `${label} 起`,
    ...sameForAll((count) => `${count} 次免費呼叫`),
  },
  'zh-CN': {
    free: '免费',
    perCall: (price) => `每次调用 ${price}`,
    upTo: (price, max) => `每次调用 ${price}，最高 ${max}`,
    from: (label) => `${label} 起`,
    ...sameForAll((count) => `${count} 次免费调用`),
  },
  ja: {
    free: '無料',
    perCall: (price) => `1回の呼び出しにつき ${price}`,
    upTo: (price, max) => `1回の呼び出しにつき ${price}、最大 ${max}`,
    from: (label) => `${label} から`,
    ...sameForAll((count) => `無料呼び出し ${count} 回`),
  },
  ko: {
    free: '무료',
    perCall: (price) => `호출당 ${price}`,
    upTo: (price, max) => `호출당 ${price}, 최대 ${max}`,
    from: (label) => `${label}부터`,
    ...sameForAll((count) => `무료 호출 ${count}회`),
  },
  es: {
    free: 'Gratis',
    perCall: (price) => `${price} por llamada`,
    upTo: (price, max) => `${price}, hasta ${max} por llamada`,
    from: (label) => `desde ${label}`,
    oneFreeCall: (count) => `${count} llamada gratuita`,
    freeCalls: (count) => `${count} llamadas gratuitas`,
  },
  de: {
    free: 'Kostenlos',
    perCall: (price) => `${price} pro Aufruf`,
    upTo: (price, max) => `${price}, bis zu ${max} pro Aufruf`,
    from: (label) => `ab ${label}`,
    oneFreeCall: (count) => `${count} kostenloser Aufruf`,
    freeCalls: (count) => `${count} kostenlose Aufrufe`,
  },
  fr: {
    free: 'Gratuit',
    perCall: (price) => `${price} par appel`,
    upTo: (price, max) => `${price}, jusqu’à ${max} par appel`,
    from: (label) => `à partir de ${label}`,
    oneFreeCall: (count) => `${count} appel gratuit`,
    freeCalls: (count) => `${count} appels gratuits`,
  },
};

type Formats = { readonly usd: Intl.NumberFormat; readonly count: Intl.NumberFormat };
// Formats are cached: making one takes 20 µs or more, formatting a number with it less than 1 µs.
const formats = new Map<Language, Formats>();

function formatsOf(language: Language): Formats {
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
      } as Intl.NumberFormatOptions),
      count: new Intl.NumberFormat(language),
    };
    formats.set(language, found);
  }
  return found;
}

type LabelledPrice = Price & { /** Other calls cost more. */ readonly isLowestOfSeveral?: boolean };

/**
 * '$0.002 per call', '$0.002 up to $0.05 per call', 'from $0.002 per call' or 'Free', in the given language. Whole dollars have no
 * decimals, other amounts two to six.
 */
export function priceLabel(price: LabelledPrice, language: Language): string {
  const { free, perCall, upTo, from } = PHRASES[language];
  const { priceMicros, maxPriceMicros, isLowestOfSeveral = false } = price;
  const usd = (micros: number): string => formatsOf(language).usd.format(micros / 1_000_000);
  if (isLowestOfSeveral) return from(perCall(usd(priceMicros)));
  if (maxPriceMicros !== null && maxPriceMicros > priceMicros) return upTo(usd(priceMicros), usd(maxPriceMicros));
  return priceMicros === 0 && maxPriceMicros === null ? free : perCall(usd(priceMicros));
}

/** '100 free calls' in the given language. `freeCalls` must be at least 1. */
export function freeCallsLabel(freeCalls: number, language: Language): string {
  const { oneFreeCall, freeCalls: many } = PHRASES[language];
  return (freeCalls === 1 ? oneFreeCall : many)(formatsOf(language).count.format(freeCalls));
}
