import { afterEach, expect, it, vi } from 'vitest';
import { TripsByNode } from '../../src/observability/node-trips.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

it('a node that left is shown for five more minutes, and continues its counts if it returns', () => {
  let now = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const trips = new TripsByNode();
  const losses = (...inUse: string[]): object => Object.fromEntries(trips.read(inUse, (node) => node.losses));
  trips.of('a').lost();
  trips.of('b');
  expect(losses('a', 'b')).toEqual({ a: 1, b: 0 });
  now += 299_000;
  expect(losses('b')).toEqual({ a: 1, b: 0 });
  now += 2_000;
  expect(losses('b')).toEqual({ b: 0 });
  trips.of('a').lost();
  expect(losses('a', 'b')).toEqual({ a: 2, b: 0 });
});

it('nodes that are replaced endlessly displace the oldest, and never one that is in use', () => {
  let now = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => now++);
  const trips = new TripsByNode();
  trips.of('stays').lost();
  for (let i = 0; i < 1_000; i++) {
    trips.read(['stays'], () => 0);
    trips.of(`node ${i}`);
  }
  const shown = trips.read(['stays'], (node) => node.losses);
  expect(shown.size).toBe(256);
  expect(shown.get('stays')).toBe(1);
  expect(shown.has('node 999')).toBe(true);
});
