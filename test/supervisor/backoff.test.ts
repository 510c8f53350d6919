import { expect, it } from 'vitest';
import { Backoff } from '../../src/supervisor/backoff.ts';

it('a process is restarted at once the first time; then each pause is twice as long as the previous one, up to 10 s', () => {
  const backoff = new Backoff();
  const pauses = Array.from({ length: 9 }, () => backoff.next(0));
  expect(pauses).toEqual([0, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000]);
});

it('earlier failures of a process are forgotten once it has worked for some time', () => {
  const backoff = new Backoff();
  for (let i = 0; i < 5; i++) backoff.next(100);
  expect([backoff.next(29_999), backoff.next(30_000), backoff.next(100)]).toEqual([8_000, 0, 500]);
});
