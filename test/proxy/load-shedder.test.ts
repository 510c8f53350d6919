import { afterEach, describe, expect, it, vi } from 'vitest';
import { LoadShedder } from '../../src/proxy/load-shedder.ts';
import { CLOCKS } from '../support/clocks.ts';

const SAMPLE_MS = 50;

class Scene {
  nowMs = 1_000;
  #draws = 0;
  /** Its random numbers go evenly from 0 to 1, so that each share of calls is met exactly. */
  readonly shedder = new LoadShedder({ now: () => this.nowMs, random: () => (this.#draws++ % 100) / 100 });

  /** Fires the timer `times` times, each time `ms` too late. */
  late(ms: number, times: number): void {
    for (let i = 0; i < times; i++) {
      this.nowMs += SAMPLE_MS + ms;
      this.shedder.sample();
    }
  }

  /** @returns how many of this many new calls are shed */
  shedOf(calls: number): number {
    return Array.from({ length: calls }, () => this.shedder.sheds()).filter(Boolean).length;
  }
}

describe('a process whose event loop is on time', () => {
  it('sheds nothing, however long it runs', () => {
    const scene = new Scene();
    scene.late(99, 1_000);
    expect(scene.shedOf(1_000)).toBe(0);
  });

  it('sheds nothing because of isolated delays', () => {
    const scene = new Scene();
    for (let i = 0; i < 50; i++) {
      scene.late(400, 1);
      scene.late(0, 1);
    }
    // A single pause of the process, however long, is one late sample.
    scene.late(30_000, 1);
    expect(scene.shedOf(1_000)).toBe(0);
  });
});

describe('a process that nobody calls', () => {
  afterEach(() => void vi.useRealTimers());

  it('stops its timer after a second, and does not count the time without a timer as a delay', () => {
    vi.useFakeTimers({ toFake: [...CLOCKS] });
    const shedder = new LoadShedder({ now: () => Date.now() });
    shedder.start();
    vi.advanceTimersByTime(950);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(200);
    expect(vi.getTimerCount()).toBe(0);
    vi.advanceTimersByTime(60_000);
    expect(shedder.sheds()).toBe(false);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(500);
    expect(shedder.longestDelayMs).toBe(0);
    expect(shedder.share).toBe(0);
    shedder.stop();
    expect([shedder.sheds(), vi.getTimerCount()]).toEqual([false, 0]);
  });
});

describe('a process whose event loop stays late', () => {
  it('reports to every reader the longest delay of the last one to two minutes', () => {
    const scene = new Scene();
    for (const ms of [20, 70, 5]) scene.late(ms, 1);
    expect([scene.shedder.longestDelayMs, scene.shedder.longestDelayMs]).toEqual([70, 70]);
    scene.nowMs += 60_000;
    expect(scene.shedder.longestDelayMs).toBe(70);
    scene.nowMs += 130_000;
    expect(scene.shedder.longestDelayMs).toBe(0);
  });

  it('starts to shed after 500 ms, and sheds a larger share of new calls with every further late sample', () => {
    const scene = new Scene();
    scene.late(150, 3);
    expect(scene.shedOf(100)).toBe(0);
    scene.late(150, 1);
    expect(scene.shedOf(100)).toBe(7);
    scene.late(150, 2);
    expect(scene.shedOf(100)).toBe(19);
    expect(scene.shedder.shed).toBe(26);
  });

  it('accepts three calls for each one that it sheds, however long and however far it is late', () => {
    const scene = new Scene();
    scene.late(5_000, 1_000);
    expect(scene.shedOf(100_000)).toBe(25_000);
  });

  it('sheds less at once when a sample is on time, stops after a few, and then waits 500 ms before it sheds again', () => {
    const scene = new Scene();
    scene.late(150, 100);
    const shares = [];
    for (let i = 0; i < 6; i++) {
      scene.late(10, 1);
      shares.push(scene.shedOf(100));
    }
    // 12.5, 6.25 and 3.125 % of a hundred calls, rounded up.
    expect(shares).toEqual([13, 7, 4, 0, 0, 0]);
    scene.late(150, 3);
    expect(scene.shedOf(100)).toBe(0);
  });
});
