import { describe, expect, it } from 'vitest';
import { Breaker } from '../../src/proxy/breaker.ts';

/** A half window, 10 s, in ticks. */
const HALF = 20;
/** With fewer calls in the window, the breaker does not open. */
const MIN_CALLS = 10;

class Scene {
  readonly ticks = { now: 0 };
  readonly breaker = new Breaker(this.ticks);

  pass(ticks: number): void {
    this.ticks.now += ticks;
  }

  /** Reports this many failed calls. @returns whether one of them opened the breaker */
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
  it('opens when half of the calls have failed, and reports the opening once', () => {
    const scene = new Scene();
    scene.answer(10);
    expect([scene.fail(9), scene.breaker.isClosed]).toEqual([false, true]);
    expect([scene.fail(1), scene.breaker.isClosed]).toEqual([true, false]);
    expect(scene.fail(20)).toBe(false);
  });

  it('does not open before it has seen 10 calls, even if all of them fail', () => {
    const scene = new Scene();
    expect([scene.fail(MIN_CALLS - 1), scene.breaker.isClosed]).toEqual([false, true]);
    expect(scene.fail(1)).toBe(true);
  });

  it('counts only the calls of the last 10 to 20 s', () => {
    const scene = new Scene();
    scene.fail(MIN_CALLS - 1);
    scene.pass(2 * HALF);
    expect(scene.fail(1)).toBe(false);
    scene.pass(HALF);
    expect(scene.fail(MIN_CALLS - 2)).toBe(false);
    // The previous half is still in the window: together these are ten calls.
    expect(scene.fail(1)).toBe(true);
  });

  it('forgets all calls after a long silence', () => {
    const scene = new Scene();
    scene.fail(MIN_CALLS - 1);
    scene.pass(50 * HALF);
    expect(scene.fail(MIN_CALLS - 1)).toBe(false);
  });
});

describe('an open breaker', () => {
  it('lets one call through after each pause; each pause is twice as long as the previous one, up to 30 s', () => {
    const scene = opened();
    expect(Array.from({ length: 7 }, () => scene.ticksToProbe())).toEqual([2, 4, 8, 16, 32, 60, 60]);
  });

  it('closes when the probe is answered, and forgets all earlier failures', () => {
    const scene = opened();
    scene.ticksToProbe();
    expect(scene.breaker.takeProbe()).toBe(false);
    scene.breaker.answered(true);
    expect(scene.breaker.isClosed).toBe(true);
    expect(scene.fail(MIN_CALLS - 1)).toBe(false);
    expect(scene.fail(1)).toBe(true);
    expect(scene.ticksToProbe()).toBe(2);
  });

  it('does not open again, after it has closed, because of calls that were let through before it opened', () => {
    const scene = new Scene();
    const { era } = scene.breaker;
    scene.fail(MIN_CALLS);
    scene.ticksToProbe();
    scene.breaker.answered(true);
    expect([scene.fail(100, era), scene.breaker.isClosed]).toEqual([false, true]);
    // Nor do those failures add to later ones: it still takes ten.
    expect([scene.fail(MIN_CALLS - 1), scene.fail(1)]).toEqual([false, true]);
  });

  it('stays open when a call that was sent before it opened is answered', () => {
    const scene = opened();
    scene.answer(100);
    expect([scene.breaker.isClosed, scene.breaker.takeProbe()]).toEqual([false, false]);
  });

  it('makes the next call the probe if a probe was not sent, and does not lengthen the pause for that', () => {
    const scene = opened();
    scene.ticksToProbe();
    scene.breaker.returnProbe();
    expect([scene.breaker.takeProbe(), scene.breaker.takeProbe()]).toEqual([true, false]);
    expect(scene.ticksToProbe()).toBe(4);
  });

  it('tells callers to wait at least until the next probe', () => {
    const scene = opened();
    expect(scene.breaker.retryAfterSeconds).toBe(1);
    for (const seconds of [2, 4, 8]) {
      scene.ticksToProbe();
      expect(scene.breaker.retryAfterSeconds).toBe(seconds);
    }
    scene.pass(15);
    expect(scene.breaker.retryAfterSeconds).toBe(1);
  });

  it('counts as in effect only while somebody calls its service', () => {
    const scene = opened();
    expect(scene.breaker.isInTheWay).toBe(true);
    scene.pass(61);
    expect(scene.breaker.isInTheWay).toBe(false);
    scene.breaker.takeProbe();
    expect(scene.breaker.isInTheWay).toBe(true);
  });
});
