import { beforeEach, expect, it, vi } from 'vitest';

// A module of its own: with the one that all test files of this worker share, what an earlier file left running takes turns, too.
let turns: typeof import('../../src/platform/turns.ts').turns;
beforeEach(async () => {
  vi.resetModules();
  ({ turns } = await import('../../src/platform/turns.ts'));
});

it('one piece of work advances per event-loop turn, in rotation', async () => {
  const seen: string[] = [];
  let turn = 0;
  const work = async (name: string) => {
    for (let step = 0; step < 3; step++) {
      await turns.next();
      seen.push(`${turn} ${name}`);
    }
  };
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all([work('a'), work('b')]);
  isOver = true;
  expect(seen.map((entry) => entry.at(-1))).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
  expect(new Set(seen.map((entry) => entry.split(' ')[0])).size).toBe(6);
});

it('changes are applied in every other turn, however many readers wait, and do not make readers wait longer', async () => {
  const seen: string[] = [];
  const reader = async () => {
    await turns.next();
    seen.push('reader');
  };
  const follower = async () => {
    for (let step = 0; step < 50; step++) {
      await turns.nextAhead();
      seen.push('follower');
    }
  };
  const readers = Promise.all(Array.from({ length: 2_000 }, reader));
  await follower();
  expect(seen.length).toBeLessThanOrEqual(101);
  expect(seen.filter((who) => who === 'reader').length).toBeGreaterThanOrEqual(49);
  await readers;
  expect(seen).toHaveLength(2_050);
});
