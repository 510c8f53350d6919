import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { freeCallsLabel, priceLabel } from '../../src/catalog/labels.ts';
import { LANGUAGES } from '../../src/catalog/languages.ts';

const fixed = (priceMicros: number) => ({ priceMicros, maxPriceMicros: null });

/** Intl writes no-break spaces between number and currency sign. */
const plain = (text: string): string => text.replace(/[\u00a0\u202f]/g, ' ');

describe('labels', () => {
  it.each([
    ['en', '$0.002 per call', 'Free', '1 free call', '100 free calls', '1,000 free calls'],
    ['zh-TW', '每次呼叫 $0.002', '免費', '1 次免費呼叫', '100 次免費呼叫', '1,000 次免費呼叫'],
    ['zh-CN', '每次调用 $0.002', '免费', '1 次免费调用', '100 次免费调用', '1,000 次免费调用'],
    ['ja', '1回の呼び出しにつき $0.002', '無料', '無料呼び出し 1 回', '無料呼び出し 100 回', '無料呼び出し 1,000 回'],
    ['ko', '호출당 $0.002', '무료', '무료 호출 1회', '무료 호출 100회', '무료 호출 1,000회'],
    ['es', '0,002 $ por llamada', 'Gratis', '1 llamada gratuita', '100 llamadas gratuitas', '1000 llamadas gratuitas'],
    [
      'de',
      '0,002 $ pro Aufruf',
      'Kostenlos',
      '1 kostenloser Aufruf',
      '100 kostenlose Aufrufe',
      '1.000 kostenlose Aufrufe',
    ],
    ['fr', '0,002 $ par appel', 'Gratuit', '1 appel gratuit', '100 appels gratuits', '1 000 appels gratuits'],
  ] as const)('in %s', (language, price, free, one, hundred, thousand) => {
    expect(plain(priceLabel(fixed(2_000), language))).toBe(price);
    expect(priceLabel(fixed(0), language)).toBe(free);
    expect(plain(freeCallsLabel(1, language))).toBe(one);
    expect(plain(freeCallsLabel(100, language))).toBe(hundred);
    expect(plain(freeCallsLabel(1_000, language))).toBe(thousand);
  });

  it.each([
    ['en', '$0.002 up to $0.05 per call'],
    ['zh-TW', '每次呼叫 $0.002，最高 $0.05'],
    ['zh-CN', '每次调用 $0.002，最高 $0.05'],
    ['ja', '1回の呼び出しにつき $0.002、最大 $0.05'],
    ['ko', '호출당 $0.002, 최대 $0.05'],
    ['es', '0,002 $, hasta 0,05 $ por llamada'],
    ['de', '0,002 $, bis zu 0,05 $ pro Aufruf'],
    ['fr', '0,002 $, jusqu’à 0,05 $ par appel'],
  ] as const)('for a price by use in %s', (language, label) => {
    expect(plain(priceLabel({ priceMicros: 2_000, maxPriceMicros: 50_000 }, language))).toBe(label);
    expect(priceLabel({ priceMicros: 0, maxPriceMicros: 50_000 }, 'en')).toBe('$0 up to $0.05 per call');
    expect(priceLabel({ priceMicros: 2_000, maxPriceMicros: 2_000 }, 'en')).toBe('$0.002 per call');
    expect(priceLabel({ priceMicros: 0, maxPriceMicros: 0 }, 'en')).toBe('$0 per call');
  });

  it.each([
    ['en', 'from $0.002 per call'],
    ['zh-TW', '每次呼叫 $0.002 起'],
    ['zh-CN', '每次调用 $0.002 起'],
    ['ja', '1回の呼び出しにつき $0.002 から'],
    ['ko', '호출당 $0.002부터'],
    ['es', 'desde 0,002 $ por llamada'],
    ['de', 'ab 0,002 $ pro Aufruf'],
    ['fr', 'à partir de 0,002 $ par appel'],
  ] as const)('for the lowest of several prices in %s', (language, label) => {
    expect(plain(priceLabel({ ...fixed(2_000), isLowestOfSeveral: true }, language))).toBe(label);
    expect(priceLabel({ ...fixed(0), isLowestOfSeveral: true }, 'en')).toBe('from $0 per call');
  });

  it.each([
    [1, '$0.000001 per call'],
    [500_000, '$0.50 per call'],
    [1_000_000, '$1 per call'],
    [12_345_678, '$12.345678 per call'],
    [1_234_500_000, '$1,234.50 per call'],
    [10_000_000_000, '$10,000 per call'],
  ])('write %i micro-dollars as %s', (micros, label) => {
    expect(priceLabel(fixed(micros), 'en')).toBe(label);
  });

  it('never round a price, in any language', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000_000_000 }), fc.constantFrom(...LANGUAGES), (micros, language) => {
        const decimalComma = ['es', 'de', 'fr'].includes(language);
        const number =
          /\d[\d.,\u00a0\u202f ]*\d|\d(?=\D*$)/.exec(priceLabel(fixed(micros), language).replace('1回', ''))?.[0] ?? '';
        const digits = decimalComma
          ? number.replace(/[.\u00a0\u202f ]/g, '').replace(',', '.')
          : number.replace(/,/g, '');
        expect(Math.round(Number(digits) * 1_000_000)).toBe(micros);
      }),
    );
  });
});
