import { expect, test, vi } from 'vitest';
import { AddressBook } from '../../src/upstream/address-book.ts';
import { AddressPolicy } from '../../src/upstream/address-policy.ts';
import type { ResolvedAddress } from '../../src/upstream/index.ts';

const policy = new AddressPolicy([]);
const PUBLIC = [{ address: '1.1.1.1', family: 4 }];
const OTHER = [{ address: '9.9.9.9', family: 4 }];

test('one look-up of a name serves any number of calls, and its answer is kept for some time', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  const answers = await Promise.all([1, 2, 3].map(() => book.resolve('a.example')));
  await book.resolve('a.example');
  expect(answers.every((answer) => answer.ok)).toBe(true);
  expect(lookup).toHaveBeenCalledTimes(1);
});

/** Runs a test with a clock that only moves when the test moves it. */
async function withClock(run: (moveTo: (ms: number) => void) => Promise<void>): Promise<void> {
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  try {
    await run((ms) => void now.mockReturnValue(ms));
  } finally {
    now.mockRestore();
  }
}

test('a stale answer is used while a single new look-up is under way, for a minute at most', async () => {
  const answers: ((found: ResolvedAddress[]) => void)[] = [];
  const lookup = vi.fn(() => new Promise<ResolvedAddress[]>((resolve) => answers.push(resolve)));
  const book = new AddressBook(policy, lookup);
  await withClock(async (moveTo) => {
    const first = book.resolve('a.example');
    answers[0]?.(PUBLIC);
    expect(await first).toEqual({ ok: true, addresses: PUBLIC });
    moveTo(9_999);
    await book.resolve('a.example');
    expect(lookup).toHaveBeenCalledTimes(1);
    // The nameserver has gone silent, but no call waits for it.
    for (const ms of [10_000, 30_000, 59_999]) {
      moveTo(ms);
      expect(await book.resolve('a.example')).toEqual({ ok: true, addresses: PUBLIC });
    }
    expect(lookup).toHaveBeenCalledTimes(2);
    moveTo(60_000);
    const late = book.resolve('a.example');
    answers[1]?.(OTHER);
    expect(await late).toEqual({ ok: true, addresses: OTHER });
    expect(lookup).toHaveBeenCalledTimes(2);
  });
});

test('after a failed look-up the last answer is still used; after a forbidden address it no longer is', async () => {
  const lookup = vi.fn<() => Promise<ResolvedAddress[]>>();
  lookup.mockResolvedValueOnce(PUBLIC).mockRejectedValueOnce(new Error('SERVFAIL'));
  lookup.mockResolvedValueOnce([{ address: '10.0.0.1', family: 4 }]);
  const book = new AddressBook(policy, lookup);
  await withClock(async (moveTo) => {
    for (const ms of [0, 10_000, 14_999]) {
      moveTo(ms);
      expect(await book.resolve('a.example')).toMatchObject({ ok: true });
      await new Promise(setImmediate);
    }
    expect(lookup).toHaveBeenCalledTimes(2);
    moveTo(15_000);
    expect(await book.resolve('a.example')).toMatchObject({ ok: true });
    await new Promise(setImmediate);
    expect(lookup).toHaveBeenCalledTimes(3);
    expect(await book.resolve('a.example')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
  });
});

test('a look-up that fails late does not extend the use of the last answer', async () => {
  const lookup = vi.fn<() => Promise<ResolvedAddress[]>>().mockRejectedValue(new Error('SERVFAIL'));
  lookup.mockResolvedValueOnce(PUBLIC);
  const book = new AddressBook(policy, lookup);
  await withClock(async (moveTo) => {
    for (const ms of [0, 59_900, 59_999]) {
      moveTo(ms);
      expect(await book.resolve('a.example')).toMatchObject({ ok: true });
      await new Promise(setImmediate);
    }
    expect(lookup).toHaveBeenCalledTimes(2);
    moveTo(60_000);
    expect(await book.resolve('a.example')).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
  });
});

test('a failure is kept for five seconds', async () => {
  const lookup = vi.fn<() => Promise<ResolvedAddress[]>>().mockRejectedValueOnce(new Error('ENOTFOUND'));
  lookup.mockResolvedValueOnce([]).mockResolvedValueOnce(PUBLIC);
  const book = new AddressBook(policy, lookup);
  await withClock(async (moveTo) => {
    for (const ms of [0, 4_999, 5_000, 9_999]) {
      moveTo(ms);
      expect(await book.resolve('a.example')).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
    }
    expect(lookup).toHaveBeenCalledTimes(2);
    moveTo(10_000);
    expect(await book.resolve('a.example')).toMatchObject({ ok: true });
  });
});

test('the number of look-ups under way is bounded; a further one fails as busy', async () => {
  const answers: (() => void)[] = [];
  const book = new AddressBook(policy, () => new Promise((resolve) => answers.push(() => resolve(PUBLIC))));
  const hanging = Array.from({ length: 1_000 }, (_, i) => book.resolve(`${i}.example`));
  expect(await book.resolve('one-more.example')).toMatchObject({ ok: false, failure: { code: 'busy' } });
  for (const answer of answers) answer();
  await Promise.all(hanging);
  const again = book.resolve('one-more.example');
  answers.at(-1)?.();
  expect(await again).toMatchObject({ ok: true });
});

test('whatever error a look-up throws, its name fails and the look-up no longer counts as under way', async () => {
  const thrown = [undefined, null, 'text', 7, new Error('SERVFAIL')];
  let next = 0;
  const book = new AddressBook(policy, () => Promise.reject(thrown[next++ % thrown.length]));
  for (let i = 0; i <= 1_000; i++) {
    expect(await book.resolve(`${i}.example`)).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
  }
});

test('the number of names kept is bounded; the oldest is dropped first', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  for (let i = 0; i <= 1000; i++) await book.resolve(`${i}.example`);
  expect(lookup).toHaveBeenCalledTimes(1001);
  await book.resolve('1000.example');
  expect(lookup).toHaveBeenCalledTimes(1001);
  await book.resolve('0.example');
  expect(lookup).toHaveBeenCalledTimes(1002);
});

test('an address is not looked up, but is still checked', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  expect(await book.resolve('8.8.8.8')).toMatchObject({ ok: true });
  expect(await book.resolve('127.0.0.1')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
  expect(await book.resolve('::1')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
  expect(lookup).not.toHaveBeenCalled();
});

test('a name that resolves to a private address is forbidden', async () => {
  const book = new AddressBook(policy, async () => [...PUBLIC, { address: '169.254.169.254', family: 4 }]);
  expect(await book.resolve('rebind.example')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
});

test("localhost resolves with the system's own look-up", async () => {
  const book = new AddressBook(new AddressPolicy(['127.0.0.0/8']));
  expect(await book.resolve('localhost')).toMatchObject({ ok: true, addresses: [{ address: '127.0.0.1' }] });
});
