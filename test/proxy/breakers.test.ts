import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Breaker, TICK_MS } from '../../src/proxy/breaker.ts';
import { Breakers } from '../../src/proxy/breakers.ts';

function open(breaker: Breaker): Breaker {
  while (breaker.isClosed) breaker.failed(breaker.era);
  return breaker;
}

it('each service has its own breaker, and keeps that breaker until its endpoint changes', () => {
  const breakers = new Breakers();
  const first = open(breakers.of('a', 'http://one/'));
  expect(breakers.of('b', 'http://one/').isClosed).toBe(true);
  expect(breakers.of('a', 'http://one/')).toBe(first);
  expect(breakers.of('a', 'http://two/').isClosed).toBe(true);
});

it('the number of open breakers equals the number of services whose calls are refused now', () => {
  const breakers = new Breakers();
  open(breakers.of('a', 'x'));
  open(breakers.of('b', 'x'));
  breakers.of('c', 'x');
  expect(breakers.open).toBe(2);
  for (let tick = 0; tick < 61; tick++) breakers.tick();
  expect(breakers.open).toBe(0);
});

it('the number of breakers is bounded', () => {
  const breakers = new Breakers({ maxServices: 3 });
  const first = open(breakers.of('0', 'x'));
  for (let i = 1; i < 3; i++) breakers.of(String(i), 'x');
  expect(breakers.of('0', 'x')).toBe(first);
  breakers.of('3', 'x');
  expect(breakers.size).toBe(3);
  expect(breakers.of('0', 'x').isClosed).toBe(true);
});

describe('the clock of started breakers', () => {
  const breakers = new Breakers();
  afterEach(() => {
    breakers.stop();
    vi.useRealTimers();
  });

  it('stops while there are no calls, and includes that time when the next call comes', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    breakers.start();
    expect(vi.getTimerCount()).toBe(0);
    const breaker = open(breakers.of('a', 'x'));
    expect([breaker.takeProbe(), vi.getTimerCount()]).toEqual([false, 1]);
    vi.advanceTimersByTime(2 * TICK_MS);
    expect([breaker.takeProbe(), breaker.takeProbe()]).toEqual([true, false]);
    vi.advanceTimersByTime(60 * TICK_MS);
    expect(vi.getTimerCount()).toBe(0);
    // The sixty ticks of the longest pause between probes have passed, although the timer rested for most of them.
    expect([breaker.takeProbe(), vi.getTimerCount()]).toEqual([true, 1]);
    breakers.stop();
    expect(vi.getTimerCount()).toBe(0);
  });
});
