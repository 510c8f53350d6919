import { describe, expect, it } from 'vitest';
import { Breaker } from '../../src/proxy/breaker.ts';

/** Ten seconds: half of the window. */
const HALF = 20;
/** What is below it proves nothing. */
const MIN_CALLS = 10;

class Scene {
  readonly ticks = { now: 0 };
  readonly breaker = new Breaker(this.ticks);

  pass(ticks: number): void {
    this.ticks.now += ticks;
  }

  /** @returns whether one of them opened it */
  fail(times: number, era = this.breaker.era): boolean {
    return Array.from({ length: times }, () => this.breaker.failed(era)).includes(true);
  }

  answer(times: number): void {
    for (let i = 0; i < times; i++) this.breaker.answered(false);
  }

  /** How many ticks pass until a probe is let through. */
  ticksToProbe(): number {
    const from = this.ticks.now;
    while (!this.breaker.takeProbe()) this.pass(1);
    return this.ticks.now - from;
  }
}

const opened = (): Scene => {
  const scene = new Scene();
  expect(scene.fail(MIN_CALLS)).toBe(true);
  return scene;
};

describe('a closed breaker', () => {
  it('opens at half of the calls failed, and says so once', () => {
    const scene = new Scene();
    scene.answer(10);
    expect([scene.fail(9), scene.breaker.isClosed]).toEqual([false, true]);
    expect([scene.fail(1), scene.breaker.isClosed]).toEqual([true, false]);
    expect(scene.fail(20)).toBe(false);
  });

  it('is not opened by few calls, whatever becomes of them', () => {
    const scene = new Scene();
    expect([scene.fail(MIN_CALLS - 1), scene.breaker.isClosed]).toEqual([false, true]);
    expect(scene.fail(1)).toBe(true);
  });

  it('counts the last 10 to 20 s only', () => {
    const scene = new Scene();
    scene.fail(MIN_CALLS - 1);
    scene.pass(2 * HALF);
    expect(scene.fail(1)).toBe(false);
    scene.pass(HALF);
    expect(scene.fail(MIN_CALLS - 2)).toBe(false);
    // One half before this one is still in the window: with it there are ten.
    expect(scene.fail(1)).toBe(true);
  });

  it('forgets all of it after a long silence', () => {
    const scene = new Scene();
    scene.fail(MIN_CALLS - 1);
    scene.pass(50 * HALF);
    expect(scene.fail(MIN_CALLS - 1)).toBe(false);
  });
});

describe('an open breaker', () => {
  it('lets one call through after each pause, and each pause is twice as long, up to half a minute', () => {
    const scene = opened();
    expect(Array.from({ length: 7 }, () => scene.ticksToProbe())).toEqual([2, 4, 8, 16, 32, 60, 60]);
  });

  it('closes when the probe is answered, with nothing held against the service', () => {
    const scene = opened();
    scene.ticksToProbe();
    expect(scene.breaker.takeProbe()).toBe(false);
    scene.breaker.answered(true);
    expect(scene.breaker.isClosed).toBe(true);
    expect(scene.fail(MIN_CALLS - 1)).toBe(false);
    expect(scene.fail(1)).toBe(true);
    expect(scene.ticksToProbe()).toBe(2);
  });

  it('is not opened again by calls that it let through before: a service that is back is left alone', () => {
    const scene = new Scene();
    const { era } = scene.breaker;
    scene.fail(MIN_CALLS);
    scene.ticksToProbe();
    scene.breaker.answered(true);
    expect([scene.fail(100, era), scene.breaker.isClosed]).toEqual([false, true]);
    // Nor do they help those that count.
    expect([scene.fail(MIN_CALLS - 1), scene.fail(1)]).toEqual([false, true]);
  });

  it('stays open when a call is answered that was sent before', () => {
    const scene = opened();
    scene.answer(100);
    expect([scene.breaker.isClosed, scene.breaker.takeProbe()]).toEqual([false, false]);
  });

  it('makes the next call the probe when one was not sent after all, and its pause counts for nothing', () => {
    const scene = opened();
    scene.ticksToProbe();
    scene.breaker.returnProbe();
    expect([scene.breaker.takeProbe(), scene.breaker.takeProbe()]).toEqual([true, false]);
    expect(scene.ticksToProbe()).toBe(4);
  });

  it('says how long to wait: never too short', () => {
    const scene = opened();
    expect(scene.breaker.retryAfterSeconds).toBe(1);
    for (const seconds of [2, 4, 8]) {
      scene.ticksToProbe();
      expect(scene.breaker.retryAfterSeconds).toBe(seconds);
    }
    scene.pass(15);
    expect(scene.breaker.retryAfterSeconds).toBe(1);
  });

  it('is in the way as long as somebody wants through', () => {
    const scene = opened();
    expect(scene.breaker.isInTheWay).toBe(true);
    scene.pass(61);
    expect(scene.breaker.isInTheWay).toBe(false);
    scene.breaker.takeProbe();
    expect(scene.breaker.isInTheWay).toBe(true);
  });
});
