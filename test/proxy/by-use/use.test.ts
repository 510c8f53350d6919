import { describe, expect, it } from 'vitest';
import { CallTerms } from '../../../src/admission/call-terms.ts';
import type { Admitted } from '../../../src/admission/commands.ts';
import { MAX_AMOUNT_MICROS } from '../../../src/platform/money.ts';
import { PausedService } from '../../../src/proxy/by-use/paused-service.ts';
import { reportIn } from '../../../src/proxy/by-use/report.ts';
import { Use } from '../../../src/proxy/by-use/use.ts';

describe('a report', () => {
  it.each([
    ['0', 0],
    ['0.000001', 1],
    ['12.5', 12_500_000],
    // An amount beyond all that the gateway computes with is still a report.
    ['1000000000.000001', MAX_AMOUNT_MICROS],
    ['99999999999999999999.5', MAX_AMOUNT_MICROS],
    ['99999999999999999999.1234567', null],
    ['', null],
    ['-1', null],
    ['+1', null],
    ['1e-3', null],
    ['0.0000001', null],
    ['.5', null],
    ['00.5', null],
    ['0x1', null],
    ['1, 1', null],
    ['$1', null],
    ['NaN', null],
  ])('of %j is %s micro-dollars', (value, micros) => {
    expect(reportIn(['Date', 'x', 'X-Acf-CHARGE', value])).toBe(micros);
  });

  it('counts only if it is the only one, even if two reports are equal', () => {
    expect(reportIn(['X-ACF-Charge', '1', 'x-acf-charge', '1'])).toBeNull();
    expect(reportIn(['X-ACF-Charges', '1'])).toBeNull();
  });
});

describe('the cost of a call that is priced by use', () => {
  const terms = new CallTerms({ id: 'id', providerId: 'p', priceMicros: 100, maxPriceMicros: 500, freeCalls: 0 });
  const used = (...reports: (string | null)[]): Use => usedOf({ amountMicros: 400, freeTier: false }, ...reports);
  const usedOf = (admitted: Pick<Admitted, 'amountMicros' | 'freeTier'>, ...reports: (string | null)[]): Use => {
    const use = new Use(admitted as Admitted, terms);
    for (const report of reports) use.read(report === null ? [] : ['x-acf-charge', report]);
    return use;
  };

  it.each([
    ['the price without a report', used(null, null), 100, true],
    ['the first report that is valid', used('x', '0.0002'), 200, false],
    ['the report of the head before that of a trailer', used('0.0002', '0.0003'), 200, false],
    ['at most what is held', used('9'), 400, false],
    ['nothing, if that is reported', used('0'), 0, false],
  ])('is %s', (_what, { chargedMicros, isOpen }, charged, open) => {
    expect([chargedMicros, isOpen]).toEqual([charged, open]);
  });

  it('is the reported amount even if the hold is larger: the record shows the difference', () => {
    expect(used('9').capturedMicros).toBe(9_000_000);
    expect(usedOf({ amountMicros: 0, freeTier: false }, '9').capturedMicros).toBe(9_000_000);
  });

  it('is nothing for a free call, which captures nothing either', () => {
    const { capturedMicros, chargedMicros, isOpen } = usedOf({ amountMicros: 0, freeTier: true }, '9');
    expect([capturedMicros, chargedMicros, isOpen]).toEqual([null, 0, false]);
  });
});

describe('a service that was paused because its caller was slow', () => {
  let now = 0;
  const paused = () => {
    const upstream = {
      isPaused: false,
      pause() {
        upstream.isPaused = true;
      },
      resume() {
        upstream.isPaused = false;
      },
    };
    return new PausedService(upstream, () => now);
  };
  const waits = (ms: number): void => {
    now += ms;
  };

  it('counts as paused for long after a continuous pause of 30 s, and for a minute afterwards', () => {
    const service = paused();
    expect(service.wasLong).toBe(false);
    service.pause();
    waits(29_999);
    service.pause();
    expect([service.isPaused, service.wasLong]).toEqual([true, false]);
    waits(1);
    expect(service.wasLong).toBe(true);
    waits(100_000);
    service.resume();
    waits(60_000);
    expect([service.isPaused, service.wasLong]).toEqual([false, true]);
    waits(1);
    expect(service.wasLong).toBe(false);
  });

  it('does not count as paused for long if each pause was short', () => {
    const service = paused();
    for (let i = 0; i < 5; i++) {
      service.pause();
      waits(20_000);
      service.resume();
    }
    expect(service.wasLong).toBe(false);
  });
});
