import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { everyBeat, onBeat } from '../../src/platform/beat.ts';
import { CLOCKS } from '../support/clocks.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets time pass until `performance.now()` is this much after a beat. */
const passTo = (ms: number): void => void vi.advanceTimersByTime(((ms - performance.now()) % 5_000) + 5_000);

it('pauses that began at different times end together, and none is longer than requested', () => {
  for (const pauseMs of [5_000, 6_700, 60_000]) {
    for (const at of [150, 1_000, 2_500, 4_899]) {
      passTo(at);
      const shortened = onBeat(pauseMs);
      expect((performance.now() + shortened) % 5_000).toBe(0);
      expect(shortened).toBeLessThanOrEqual(pauseMs);
      expect(shortened).toBeGreaterThan(pauseMs - 5_000);
    }
  }
});

it('a pause that begins on the beat keeps its full length, even if its timer was early or its round took time', () => {
  for (const at of [-1, 0, 99]) {
    passTo(at);
    expect(onBeat(5_000) + at).toBeCloseTo(5_000);
  }
});

it('a shorter pause stays unchanged', () => {
  passTo(1_000);
  expect(onBeat(4_999)).toBe(4_999);
});

it('the callback runs on each beat until the timer is ended', () => {
  const times: number[] = [];
  passTo(1_000);
  const end = everyBeat(() => times.push(performance.now() % 5_000));
  vi.advanceTimersByTime(14_000);
  expect(times).toEqual([0, 0, 0]);
  end();
  vi.advanceTimersByTime(20_000);
  expect(times).toHaveLength(3);
});
