import { expect, it } from 'vitest';
import { daysLeft } from '../../web/src/console/buyer/lasts.ts';

const days = ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10'].map((day) => `2026-11-${day}`);

it.each([
  ['nothing was spent', 5, [], null],
  ['what was spent before the last seven days does not count', 5, [{ day: '2026-11-03', spent: 4 }], null],
  ['all of it was spent today', 5, [{ day: '2026-11-10', spent: 2 }], 2],
  [
    'days without calls count from the first with some',
    5,
    [
      { day: '2026-11-06', spent: 1 },
      { day: '2026-11-10', spent: 1.5 },
    ],
    10,
  ],
  ['it does not last for a day', 0.5, [{ day: '2026-11-10', spent: 2 }], 0],
])('the time for which a balance lasts follows from the spending of the last week: %s', (_, balance, byDay, left) => {
  expect(daysLeft(balance, days, byDay)?.days ?? null).toBe(left);
});
