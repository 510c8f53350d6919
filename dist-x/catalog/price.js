import { usdToMicros } from '../platform/money.js';
export const MAX_PRICE_USD = 10_000;
/** A JSON number of USD → micro-USD, or what is wrong with it. */
export function parsePrice(usd) {
    if (usd > MAX_PRICE_USD)
        return { fault: `must be at most ${MAX_PRICE_USD} USD` };
    const micros = usdToMicros(usd);
    return micros === null ? { fault: 'must be a number of USD, 0 or more, with at most 6 decimals' } : { micros };
}
//# sourceMappingURL=price.js.map