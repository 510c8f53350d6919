import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readAmount } from '../../web/src/console/shared/amount.ts';
import { daysBetween, lastDays, rangeOf, timedRows } from '../../web/src/console/shared/days.ts';
import { outcomeOf, statusText } from '../../web/src/console/shared/outcome.ts';
import { clockRange, digitsOf, money } from '../../web/src/i18n/format.ts';

const call = (outcome: string, status = 200, free = false) => outcomeOf({ outcome, status, free_tier: free }, 'buyer');

/** As docs/api.md lists them. */
const reasons = (): string[] => {
  const row = /\| `refunded:<reason>` \| (.*) \|/.exec(readFileSync('docs/api.md', 'utf8'))?.[1] ?? '';
  return [...row.matchAll(/`(\w+)`/g)].map(([, reason = '']) => reason);
};

it('a clock range names the times between which calls were made', () => {
  const at = (hour: number, minute: number, second = 0): string =>
    new Date(2026, 10, 22, hour, minute, second).toISOString();
  const said = (from: string, to: string): string => clockRange(from, to, 'en').replaceAll(/\s/g, ' ');
  expect(said(at(7, 2), at(7, 41, 10))).toBe('7:02 – 7:41 AM');
  expect(said(at(7, 41, 2), at(7, 41, 10))).toBe('7:41:02 AM – 7:41:10 AM');
  expect(said(at(7, 41, 10), at(7, 41, 10))).toBe('7:41:10 AM');
  expect(said(at(23, 58), at(24, 3))).toBe('11:58 PM – 12:03 AM');
});

describe('the outcome of a call, in words', () => {
  it('explains every reason for a refund that the API documents', () => {
    expect(reasons().length).toBeGreaterThan(8);
    for (const reason of reasons()) {
      const { word, reason: why, text } = call(`refunded:${reason}`);
      expect(word).toBe('Refunded');
      expect(text, reason).toContain('You paid nothing');
      expect(why + text, reason).not.toContain(reason);
    }
    expect(call('refunded:something_new').text).toContain('"something_new"');
  });

  it('blames the service only for its own failures, and speaks of the buyer to others', () => {
    const blamed = reasons().filter((reason) => call(`refunded:${reason}`).isFailure);
    const failures = ['upstream_5xx', 'upstream_cut', 'upstream_denied', 'upstream_error', 'upstream_timeout'];
    expect(blamed.sort()).toEqual(failures);
    const told = outcomeOf({ outcome: 'refunded:caller_gone', status: 499, free_tier: false }, 'others');
    expect(told).toMatchObject({ reason: 'caller left', isFailure: false });
    expect(told.text).toContain('The buyer paid nothing');
  });

  it('distinguishes charged from free calls, and both from a call whose gateway died', () => {
    expect(call('completed')).toMatchObject({ word: 'Charged', text: 'The service answered. Its price was charged.' });
    expect(call('completed', 200, true).text).toContain('It used a free call.');
    const unpriced = outcomeOf({ outcome: 'completed', status: 200, free_tier: false, amount: 0 }, 'buyer');
    expect(unpriced).toMatchObject({ word: 'Free', text: 'The service answered. It cost nothing.' });
    const given = { outcome: 'completed', status: 200, free_tier: false, amount: 0.2 };
    expect(outcomeOf({ ...given, refunded: 0.2 }, 'buyer')).toMatchObject({ word: 'Given back', isFailure: false });
    expect(outcomeOf({ ...given, refunded: 0.1 }, 'others').text).toContain('A part of it was given back later.');
    expect(call('completed', 404).text).toContain('could not accept the request');
    expect(call('completed', 499).text).toContain('Your program left before the answer');
    expect(call('abandoned', 0).text).toContain('The gateway died during the call.');
    expect([statusText(0), statusText(499), statusText(200)].map((text) => text === null)).toEqual([
      false,
      false,
      true,
    ]);
  });
});

describe('days of a list', () => {
  it('include the last day, and leave an invalid day to the API', () => {
    expect(rangeOf({ from: '2026-02-28', to: '2026-02-28' })).toEqual({ from: '2026-02-28', to: '2026-03-01' });
    expect(rangeOf({ to: 'tomorrow' })).toEqual({ to: 'tomorrow' });
    expect(rangeOf({ to: '2026-13-45' })).toEqual({ to: '2026-13-45' });
    expect(rangeOf({})).toEqual({});
  });

  it('are listed without gaps between two days, and number at most 400', () => {
    expect(daysBetween('2026-02-27', '2026-03-01')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(daysBetween('2020-01-01', '2026-03-01')).toHaveLength(400);
    expect(daysBetween('2026-03-02', '2026-03-01')).toEqual(['2026-03-01']);
  });

  it('have values in a chart only if there were calls, and are replaced by hours if hours are known', () => {
    const day = { day: '2026-03-01', calls: 3 };
    const days = ['2026-02-28', '2026-03-01'];
    const second = Date.parse('2026-02-28') / 1_000;
    expect(timedRows(days, [day], undefined)).toEqual({
      unit: 'day',
      times: [second, second + 86_400],
      rows: [undefined, day],
    });
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 30 * 3_600_000;
    const row = { hour: new Date(hour).toISOString(), calls: 3 };
    const { unit, times, rows } = timedRows(days, [day], [row]);
    expect([unit, times[0], rows[0], rows[1]]).toEqual(['hour', hour / 1_000, row, undefined]);
    expect(times.length).toBeGreaterThanOrEqual(31);
  });

  it('end with today, in UTC', () => {
    expect(lastDays(3, Date.UTC(2026, 2, 1, 23, 59))).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
  });
});

it('amounts in a column have as many decimals as the longest amount', () => {
  const amounts = [46.945, 8.57, -0.000001, 10];
  expect(digitsOf(amounts)).toBe(6);
  expect(digitsOf([46.945, 8.57])).toBe(3);
  expect(digitsOf([10, 0.5, 0])).toBe(2);
  expect([46.945, 8.57].map((amount) => money(amount, 'en', 3))).toEqual(['$46.945', '$8.570']);
  expect([0, 0.1, 0.002, 0.000001, 12].map((amount) => money(amount, 'en'))).toEqual([
    '$0.00',
    '$0.10',
    '$0.002',
    '$0.000001',
    '$12.00',
  ]);
});

it.each([
  ['1', 1],
  ['12.50', 12.5],
  ['.5', 0.5],
  [' 0.000001 ', 0.000001],
  ['0', null],
  ['-1', null],
  ['1e3', null],
  ['1,5', null],
  ['0.0000001', null],
  ['', null],
  ['9999999999', null],
])('a payment that somebody enters: %j', (text, amount) => {
  expect(readAmount(text, { least: 0.000001, most: 1_000_000_000 }).usd).toBe(amount);
});

it('a price may be 0, and has the same bounds as in the gateway', () => {
  expect(readAmount('0').usd).toBe(0);
  expect(readAmount('10000').usd).toBe(10_000);
  expect(readAmount('10000.01').fault).toBe('must be at most $10,000');
  expect(readAmount('0.0000001').fault).toBe('must have at most 6 decimals');
});
