import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PagePermits, type PagePermitsOptions } from '../../src/http/page-permits.ts';

/** The requests that have begun and not ended, as their owners' names, in the order in which they began. */
const begun: string[] = [];
const ends: (() => void)[] = [];
let permits: PagePermits;

beforeEach(() => {
  begun.length = 0;
  ends.length = 0;
});
afterEach(() => vi.useRealTimers());

function open(options: Partial<PagePermitsOptions> = {}): void {
  permits = new PagePermits({ permits: 3, permitsOfOne: 2, ...options });
}

/** @returns 'done', or the code of the refusal */
function ask(owner: string): Promise<string> {
  const work = (): Promise<string> =>
    new Promise((resolve) => {
      begun.push(owner);
      ends.push(() => resolve('done'));
    });
  return permits.run(owner, work).catch((error: { code: string }) => error.code);
}

/** Ends the request that began as number `i`, and lets what follows happen. */
async function end(i: number): Promise<void> {
  ends[i]?.();
  await new Promise((resolve) => setImmediate(resolve));
}

it('one owner never has more permits than its limit, and waits even if others are free', async () => {
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

it('owners that wait take turns, however long their lines are', async () => {
  open({ permits: 1, permitsOfOne: 1 });
  for (const owner of ['a', 'a', 'a', 'a', 'b', 'b', 'c']) void ask(owner);
  for (let i = 0; i < 7; i++) await end(i);
  expect(begun).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
});

it('a full line refuses its owner, and nobody else', async () => {
  open({ permitsOfOne: 1, maxWaitingOfOne: 1 });
  void ask('a');
  void ask('a');
  expect(await ask('a')).toBe('unavailable');
  const other = ask('b');
  expect(begun).toEqual(['a', 'b']);
  await end(1);
  expect(await other).toBe('done');
});

it('a request does not wait longer than its limit, and takes no permit afterwards', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  open({ permits: 1, permitsOfOne: 1 });
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

it('a request that got a permit no longer has a deadline', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  open({ permits: 1, permitsOfOne: 1 });
  void ask('a');
  const next = ask('b');
  expect(vi.getTimerCount()).toBe(1);
  await end(0);
  expect(vi.getTimerCount()).toBe(0);
  await end(1);
  expect(await next).toBe('done');
});

it('a request that fails releases its permit', async () => {
  open({ permits: 1, permitsOfOne: 1 });
  const failing = permits.run('a', () => Promise.reject(new Error('broken')));
  const next = ask('a');
  await expect(failing).rejects.toThrow('broken');
  await end(0);
  expect(await next).toBe('done');
});
