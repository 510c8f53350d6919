import { expect, it } from 'vitest';
import { Pace } from '../../../src/ledger/writing/pace.ts';

/** The pauses after looks, 100 ms apart, that found these numbers of events. */
function pauses(...found: number[]): number[] {
  const pace = new Pace(0);
  return found.map((events, i) => {
    pace.found(events, (i + 1) * 100);
    return pace.pauseMs;
  });
}

it('the pause is short after single events and after the first event that follows a silence', () => {
  expect(pauses(0, 1, 0, 50, 0, 99, 0)).toEqual([100, 100, 100, 100, 100, 100, 100]);
});

it('events in two looks in a row count as steady load, however few they are', () => {
  expect(pauses(0, 1, 1, 0, 1)).toEqual([100, 100, 800, 100, 100]);
});

it('after two seconds without an event the pause is the longest, until there is an event', () => {
  const pace = new Pace(0);
  pace.found(0, 1_900);
  expect([pace.isQuiet, pace.pauseMs]).toEqual([false, 100]);
  pace.found(0, 2_000);
  expect([pace.isQuiet, pace.pauseMs]).toEqual([true, 800]);
  pace.found(1, 2_500);
  expect([pace.isQuiet, pace.pauseMs]).toEqual([false, 100]);
});

it('the pause is short for the first calls after a silence and after the end of load', () => {
  expect(pauses(0, 5_000, 0, 5_000, 20, 0)).toEqual([100, 100, 100, 100, 800, 100]);
});

it('under steady load the pause lets 5 000 events gather, but is 800 ms at most', () => {
  const looks = (perLook: number) => pauses(perLook, perLook).at(-1);
  expect(looks(100)).toBe(800);
  expect(looks(500)).toBe(800);
  expect(looks(1_000)).toBe(500);
  expect(looks(2_000)).toBe(250);
  expect(looks(5_000)).toBe(100);
  expect(looks(10_000)).toBe(100);
});

it('the rate is taken over the time since the previous look, however long that was', () => {
  const pace = new Pace(0);
  pace.found(1_000, 100);
  pace.found(5_000, 600);
  expect(pace.pauseMs).toBe(500);
  pace.found(12_500, 1_100);
  expect(pace.pauseMs).toBe(500);
  pace.found(5_000, 1_300);
  expect(pace.pauseMs).toBe(200);
});
