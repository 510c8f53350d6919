import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PagePlaces, type PagePlacesOptions } from '../../src/http/page-places.ts';

/** The requests that have begun and not ended, as their owners' names, in the order in which they began. */
const begun: string[] = [];
const ends: (() => void)[] = [];
let places: PagePlaces;

beforeEach(() => {
  begun.length = 0;
  ends.length = 0;
});
afterEach(() => vi.useRealTimers());

function open(options: Partial<PagePlacesOptions> = {}): void {
  places = new PagePlaces({ places: 3, placesOfOne: 2, ...options });
}

/** @returns 'done', or the code of the refusal */
function ask(owner: string): Promise<string> {
  const work = (): Promise<string> =>
    new Promise((resolve) => {
      begun.push(owner);
      ends.push(() => resolve('done'));
    });
  return places.run(owner, work).catch((error: { code: string }) => error.code);
}

/** Ends the request that began as number `i`, and lets what follows happen. */
async function end(i: number): Promise<void> {
  ends[i]?.();
  await new Promise((resolve) => setImmediate(resolve));
}

it('one owner never has more places than one may have, and waits although others are free', async () => {
  open();
  const answers = [ask('a'), ask('a'), ask('a')];
  expect(begun).toEqual(['a', 'a']);
  answers.push(ask('b'));
  expect(begun).toEqual(['a', 'a', 'b']);
  await end(0);
  expect(begun).toEqual(['a', 'a', 'b', 'a']);
  for (let i = 1; i < 4; i++) await end(i);
  expect(await Promise.all(answers)).toEqual(['done', 'done', 'done', 'done']);
});

it('the owners with a line take turns, however long their lines are', async () => {
  open({ places: 1, placesOfOne: 1 });
  for (const owner of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) void ask(owner);
  for (let i = 0; i < 7; i++) await end(i);
  expect(begun).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
});

it('a full line refuses its owner, and nobody else', async () => {
  open({ placesOfOne: 1, maxWaitingOfOne: 1 });
  void ask('a');
  void ask('a');
  expect(await ask('a')).toBe('unavailable');
  const other = ask('b');
  expect(begun).toEqual(['a', 'b']);
  await end(1);
  expect(await other).toBe('done');
});

it('a request does not wait longer than it may, and takes no place afterwards', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  open({ places: 1, placesOfOne: 1 });
  void ask('a');
  const late = ask('b');
  vi.advanceTimersByTime(5_000);
  expect(await late).toBe('unavailable');
  await end(0);
  const next = ask('c');
  expect(begun).toEqual(['a', 'c']);
  await end(1);
  expect(await next).toBe('done');
});

it('a request that got a place is not timed any more', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  open({ places: 1, placesOfOne: 1 });
  void ask('a');
  const next = ask('b');
  expect(vi.getTimerCount()).toBe(1);
  await end(0);
  expect(vi.getTimerCount()).toBe(0);
  await end(1);
  expect(await next).toBe('done');
});

it('a request that fails leaves its place', async () => {
  open({ places: 1, placesOfOne: 1 });
  const failing = places.run('a', () => Promise.reject(new Error('broken')));
  const next = ask('a');
  await expect(failing).rejects.toThrow('broken');
  await end(0);
  expect(await next).toBe('done');
});
