import { expect, it } from 'vitest';
import { daysLeft } from '../../web/src/console/buyer/lasts.ts';

const days = ['01', '02', '03', '04', '05', '06', '07', '08', '09', '10'].map((day) => `2026-11-${day}`);
const today = (spent: number) => [{ day: '2026-11-10', spent }];

it.each([
  ['nothing was spent', 5, [], '12:00', null],
  ['what was spent before the last seven days does not count', 5, [{ day: '2026-11-03', spent: 4 }], '12:00', null],
  ['all of it was spent today, of which half is over', 5, today(1), '12:00', 2],
  ['calls of the first minutes of a day are no pace', 5, today(1), '00:01', 0],
  ['an hour is', 48, today(1), '00:01', 2],
  [
    'days without calls count from the first with some',
    5,
    [
      { day: '2026-11-06', spent: 1 },
      { day: '2026-11-10', spent: 1.25 },
    ],
    '12:00',
    10,
  ],
  ['it does not last for a day', 0.5, today(2), '12:00', 0],
])(
  'the time for which a balance lasts follows from the spending of the last week: %s',
  (_, balance, byDay, at, left) => {
    expect(daysLeft(balance, days, byDay, Date.parse(`2026-11-10T${at}:00Z`))?.days ?? null).toBe(left);
  },
);
