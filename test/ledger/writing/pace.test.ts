import { expect, it } from 'vitest';
import { Pace } from '../../../src/ledger/writing/pace.ts';

/** The pauses after looks 100 ms apart that found these many events. */
function pauses(...found: number[]): number[] {
  const pace = new Pace(0);
  return found.map((events, i) => {
    pace.found(events, (i + 1) * 100);
    return pace.pauseMs;
  });
}

it('the first event after a silence, and what comes alone, is looked for in a moment', () => {
  expect(pauses(0, 1, 0, 50, 0, 99, 0)).toEqual([100, 100, 100, 100, 100, 100, 100]);
});

it('events in two looks in a row are steady load, however few they are', () => {
  expect(pauses(0, 1, 1, 0, 1)).toEqual([100, 100, 500, 100, 100]);
});

it('after two seconds without an event it looks twice a second, until there is one', () => {
  const pace = new Pace(0);
  pace.found(0, 1_900);
  expect([pace.isQuiet, pace.pauseMs]).toEqual([false, 100]);
  pace.found(0, 2_000);
  expect([pace.isQuiet, pace.pauseMs]).toEqual([true, 500]);
  pace.found(1, 2_500);
  expect([pace.isQuiet, pace.pauseMs]).toEqual([false, 100]);
});

it('the first calls after a silence, and what follows the end of load, do not wait longer', () => {
  expect(pauses(0, 5_000, 0, 5_000, 20, 0)).toEqual([100, 100, 100, 100, 500, 100]);
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
  pace.found(12_500, 1_100);
  expect(pace.pauseMs).toBe(500);
  pace.found(5_000, 1_300);
  expect(pace.pauseMs).toBe(200);
});
