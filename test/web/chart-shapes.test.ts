import { expect, it } from 'vitest';
import { barsPath, linePath, lonely, timeMarks, valueMarks } from '../../web/src/design/chart-shapes.ts';

const DAY = 86_400;
const at = (time: string): number => Date.parse(`${time}Z`) / 1_000;
const days = (marks: readonly number[]): string[] =>
  marks.map((mark) => new Date(mark * 1_000).toISOString().slice(0, 10));
const times = (marks: readonly number[]): string[] =>
  marks.map((mark) => new Date(mark * 1_000).toISOString().slice(8, 19));
const same = (value: number): number => value;

it('marks of values are 1, 2 or 5 times a power of ten apart, at least 30 pixels, and without binary fractions', () => {
  expect(valueMarks(75, 142, true)).toEqual([0, 20, 40, 60]);
  expect(valueMarks(1, 142, false)).toEqual([0, 0.5, 1]);
  expect(valueMarks(0.35, 142, false)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(valueMarks(4_000_000_000, 142, true)).toEqual([0, 1_000_000_000, 2e9, 3e9, 4e9]);
  for (const top of [3e-7, 0.0044, 0.011, 1.1, 9.9, 77, 1_234_567]) {
    const [first, second = 0, ...more] = valueMarks(top, 142, false);
    expect(first).toBe(0);
    if (more.length > 0) expect((second / top) * 142).toBeGreaterThanOrEqual(30);
    expect(more.every((mark) => mark <= top && String(mark).length < 9)).toBe(true);
  }
});

it('marks of counts are whole, and marks of money have at most six digits after the point', () => {
  expect(valueMarks(1.1, 142, true)).toEqual([0, 1]);
  expect(valueMarks(0.0000022, 142, false)).toEqual([0, 0.000001, 0.000002]);
  expect(valueMarks(0.0000005, 142, false)).toEqual([0]);
});

it('marks of days begin at a day, and name the first of months when they are a month apart', () => {
  const month = [at('2026-10-29T00:00:00'), at('2026-11-27T00:00:00')] as const;
  expect(days(timeMarks(...month, 440, 'day'))).toEqual([
    '2026-10-29',
    '2026-11-05',
    '2026-11-12',
    '2026-11-19',
    '2026-11-26',
  ]);
  // Half a day of room on both sides is for the bars.
  const roomy = timeMarks(month[0] - DAY / 2, month[1] + DAY / 2, 440, 'day');
  expect(days(roomy)[0]).toBe('2026-10-29');
  expect(days(timeMarks(at('2025-11-28T00:00:00'), month[1], 500, 'day'))).toEqual([
    '2026-01-01',
    '2026-03-01',
    '2026-05-01',
    '2026-07-01',
    '2026-09-01',
    '2026-11-01',
  ]);
  expect(days(timeMarks(month[1], month[1], 440, 'day'))).toEqual(['2026-11-27']);
});

it('marks of hours and seconds are at round times, and never closer than an hour or a second', () => {
  const [from, to] = [at('2026-11-26T21:00:00'), at('2026-11-27T20:00:00')];
  expect(times(timeMarks(from, to, 440, 'hour'))).toEqual([
    '27T00:00:00',
    '27T04:00:00',
    '27T08:00:00',
    '27T12:00:00',
    '27T16:00:00',
    '27T20:00:00',
  ]);
  expect(timeMarks(from, from + 7_200, 4_000, 'hour')).toEqual([from, from + 3_600, from + 7_200]);
  expect(times(timeMarks(at('2026-11-27T10:11:03'), at('2026-11-27T10:13:02'), 446, 'second'))).toEqual([
    '27T10:11:30',
    '27T10:12:00',
    '27T10:12:30',
    '27T10:13:00',
  ]);
});

it('lines have gaps where values are unknown, and values without neighbours are named', () => {
  const values = [1, 2, null, 4, null, 0, 6];
  expect(linePath([0, 1, 2, 3, 4, 5, 6], values, same, same)).toBe('M0,1L1,2M3,4M5,0L6,6');
  expect(lonely(values)).toEqual([3]);
  expect(lonely([7])).toEqual([0]);
  expect(lonely([])).toEqual([]);
});

it('bars stand on zero, centred on their time, and there is none for nothing', () => {
  const path = barsPath([100, 200, 300], [50, 0, null], same, (value) => 100 - value, 20);
  // 70 % of the column wide, with rounded corners at the upper end.
  expect(path).toBe('M93,100v-47.9a2.1,2.1 0 0 1 2.1,-2.1h9.8a2.1,2.1 0 0 1 2.1,2.1v47.9z');
  // A bar lower than its corners are round.
  expect(barsPath([100], [1], same, (value) => 100 - value, 20)).toContain('M93,100v0a1,1');
  expect(barsPath([100], [1], same, (value) => 100 - value, 1_000)).toMatch(/^M80,.*h38a/);
});
