import { expect, test, vi } from 'vitest';
import { AddressBook } from '../../src/upstream/address-book.ts';
import { AddressPolicy } from '../../src/upstream/address-policy.ts';
import type { ResolvedAddress } from '../../src/upstream/index.ts';

const policy = new AddressPolicy([]);
const PUBLIC = [{ address: '1.1.1.1', family: 4 }];

test('a name is looked up once for any number of calls, and kept for a while', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  const answers = await Promise.all([1, 2, 3].map(() => book.resolve('a.example')));
  await book.resolve('a.example');
  expect(answers.every((answer) => answer.ok)).toBe(true);
  expect(lookup).toHaveBeenCalledTimes(1);
});

test('a kept answer grows stale', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  try {
    await book.resolve('a.example');
    now.mockReturnValue(9_999);
    await book.resolve('a.example');
    expect(lookup).toHaveBeenCalledTimes(1);
    now.mockReturnValue(10_000);
    await book.resolve('a.example');
    expect(lookup).toHaveBeenCalledTimes(2);
  } finally {
    now.mockRestore();
  }
});

test('a failure is not kept', async () => {
  const lookup = vi.fn<() => Promise<ResolvedAddress[]>>().mockRejectedValueOnce(new Error('ENOTFOUND'));
  lookup.mockResolvedValueOnce([]).mockResolvedValueOnce(PUBLIC);
  const book = new AddressBook(policy, lookup);
  expect(await book.resolve('a.example')).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
  expect(await book.resolve('a.example')).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
  expect(await book.resolve('a.example')).toMatchObject({ ok: true });
});

test('a bounded number of names is kept, the oldest goes first', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  for (let i = 0; i <= 1000; i++) await book.resolve(`${i}.example`);
  expect(lookup).toHaveBeenCalledTimes(1001);
  await book.resolve('1000.example');
  expect(lookup).toHaveBeenCalledTimes(1001);
  await book.resolve('0.example');
  expect(lookup).toHaveBeenCalledTimes(1002);
});

test('an address needs no look-up, and is checked all the same', async () => {
  const lookup = vi.fn(async () => PUBLIC);
  const book = new AddressBook(policy, lookup);
  expect(await book.resolve('8.8.8.8')).toMatchObject({ ok: true });
  expect(await book.resolve('127.0.0.1')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
  expect(await book.resolve('::1')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
  expect(lookup).not.toHaveBeenCalled();
});

test('a name that points inside is forbidden', async () => {
  const book = new AddressBook(policy, async () => [...PUBLIC, { address: '169.254.169.254', family: 4 }]);
  expect(await book.resolve('rebind.example')).toMatchObject({ ok: false, failure: { code: 'address_forbidden' } });
});

test("localhost resolves with the system's own look-up", async () => {
  const book = new AddressBook(new AddressPolicy(['127.0.0.0/8']));
  expect(await book.resolve('localhost')).toMatchObject({ ok: true, addresses: [{ address: '127.0.0.1' }] });
});
