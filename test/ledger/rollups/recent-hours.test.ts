import { expect, it } from 'vitest';
import { hoursSince } from '../../../src/ledger/rollups/recent-hours.ts';

it('hours are shown instead of days if every day is one of the last three, today included', () => {
  const now = Date.parse('2026-03-01T00:00:00Z');
  const since = (...days: string[]) =>
    hoursSince(
      days.map((day) => ({ day })),
      now,
    );
  expect(since('2026-03-01', '2026-02-27')).toBe(Date.parse('2026-02-27T00:00:00Z'));
  expect(since('2026-03-01', '2026-02-26')).toBeNull();
  expect(since()).toBeNull();
});
