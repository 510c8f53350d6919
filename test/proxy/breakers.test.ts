import { expect, it } from 'vitest';
import type { Breaker } from '../../src/proxy/breaker.ts';
import { Breakers } from '../../src/proxy/breakers.ts';

function open(breaker: Breaker): Breaker {
  while (breaker.isClosed) breaker.failed(breaker.era);
  return breaker;
}

it('each service has a breaker of its own, which it keeps until its endpoint changes', () => {
  const breakers = new Breakers();
  const first = open(breakers.of('a', 'http://one/'));
  expect(breakers.of('b', 'http://one/').isClosed).toBe(true);
  expect(breakers.of('a', 'http://one/')).toBe(first);
  expect(breakers.of('a', 'http://two/').isClosed).toBe(true);
});

it('the number of open breakers is the number of services whose calls are refused now', () => {
  const breakers = new Breakers();
  open(breakers.of('a', 'x'));
  open(breakers.of('b', 'x'));
  breakers.of('c', 'x');
  expect(breakers.open).toBe(2);
  for (let tick = 0; tick < 61; tick++) breakers.tick();
  expect(breakers.open).toBe(0);
});

it('no more breakers are kept than the bound allows', () => {
  const breakers = new Breakers({ maxServices: 3 });
  const first = open(breakers.of('0', 'x'));
  for (let i = 1; i < 3; i++) breakers.of(String(i), 'x');
  expect(breakers.of('0', 'x')).toBe(first);
  breakers.of('3', 'x');
  expect(breakers.size).toBe(3);
  expect(breakers.of('0', 'x').isClosed).toBe(true);
});
