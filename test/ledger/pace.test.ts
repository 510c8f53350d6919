import { expect, it } from 'vitest';
import { Pace } from '../../src/ledger/pace.ts';

/** The pauses after looks 100 ms apart that found these many events. */
function pauses(...found: number[]): number[] {
  const pace = new Pace(0);
  return found.map((events, i) => {
    pace.found(events, (i + 1) * 100);
    return pace.pauseMs;
  });
}

it('an idle or a lightly loaded writer looks again in a moment', () => {
  expect(pauses(0, 1, 0, 50, 99, 99, 0)).toEqual([100, 100, 100, 100, 100, 100, 100]);
});

it('the first calls after a silence, and what follows a single burst, do not wait longer', () => {
  expect(pauses(0, 5_000, 0, 5_000, 20, 0)).toEqual([100, 100, 100, 100, 100, 100]);
});

it('under steady load a batch gathers 5 000 events, for half a second at most', () => {
  const looks = (perLook: number) => pauses(perLook, perLook).at(-1);
  expect(looks(100)).toBe(500);
  expect(looks(1_000)).toBe(500);
  expect(looks(2_000)).toBe(250);
  expect(looks(5_000)).toBe(100);
  expect(looks(10_000)).toBe(100);
});

it('the rate counts the time since the look before, however long it was', () => {
  const pace = new Pace(0);
  pace.found(1_000, 100);
  pace.found(5_000, 600);
  expect(pace.pauseMs).toBe(500);
  pace.found(400, 1_100);
  expect(pace.pauseMs).toBe(100);
  pace.found(5, 1_100);
  expect(pace.pauseMs).toBe(100);
});
