import { describe, expect, it } from 'vitest';
import type { Admission } from '../../src/admission/admission.ts';
import type { TakeResult } from '../../src/admission/commands.ts';
import { ExhaustedAddresses } from '../../src/gate/exhausted-addresses.ts';
import { Gate } from '../../src/gate/gate.ts';
import { RefillTimes } from '../../src/gate/refill-times.ts';
import { Authenticator } from '../../src/keys/authenticator.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { KeyCache } from '../../src/keys/key-cache.ts';

const limited: TakeResult = {
  outcome: 'rate_limited',
  rate: { limit: 60, tokens: 0, remaining: 0, resetSeconds: 60, retryAfterSeconds: 30 },
};

describe('an address over its limit', () => {
  it('gets few of its made-up keys looked up; another address gets all of them looked up', async () => {
    let lookUps = 0;
    const cache = new KeyCache({
      fetchKeys: async () => {
        lookUps++;
        return [];
      },
    });
    const admission = {
      takeForAddress: (_address: string, _limit: number, done: (result: TakeResult) => void) => done(limited),
    } as unknown as Admission;
    const gate = new Gate({
      authenticator: new Authenticator(cache, Date.now),
      admission,
      anonymousRateLimit: 60,
      refills: new RefillTimes(Date.now),
      onContradiction: () => {},
    });
    const madeUp = (): string => `Bearer ${newKeyId()}:${newSecret()}`;
    const caller = { address: '192.0.2.1' };

    expect(await gate.identify(madeUp(), caller)).toBeNull();
    expect(lookUps).toBe(1);
    gate.take(caller.address, () => {});
    expect(await gate.identify(madeUp(), caller)).toBeNull();
    expect(lookUps).toBe(2);
    for (let i = 0; i < 1_000; i++) expect(await gate.identify(madeUp(), caller)).toBeNull();
    // At most 50 per second; the loop may take a few seconds.
    expect(lookUps).toBeLessThan(500);
    const before = lookUps;
    for (let i = 0; i < 100; i++) expect(await gate.identify(madeUp(), { address: '192.0.2.2' })).toBeNull();
    expect(lookUps).toBe(before + 100);
  });
});

it('the gate reports a key only if Redis and the record disagree about it', () => {
  const noticed: string[] = [];
  const gate = new Gate({
    authenticator: new Authenticator(new KeyCache({ fetchKeys: async () => [] }), Date.now),
    admission: {} as Admission,
    anonymousRateLimit: 60,
    refills: new RefillTimes(Date.now),
    onContradiction: (keyId) => noticed.push(keyId),
  });
  const key = (accountStatus: 'active' | 'suspended', expiresAtMs: number | null = null) =>
    ({ keyId: accountStatus, rateLimit: 60, accountStatus, expiresAtMs }) as KeyRecord;
  const [past, future] = [Date.now() - 60_000, Date.now() + 600_000];
  const said = (outcome: 'taken' | 'rate_limited' | 'revoked' | 'suspended' | 'expired', limit = 60): TakeResult => ({
    outcome,
    rate: { ...limited.rate, limit },
  });
  for (const result of [said('taken'), said('rate_limited'), { outcome: 'unavailable' } as const])
    gate.heard(key('active'), result);
  gate.heard(key('suspended'), said('suspended'));
  gate.heard(key('suspended', past), said('suspended'));
  gate.heard(key('active', past), said('expired'));
  gate.heard(key('active', future), said('taken'));
  gate.heard(key('active'), said('taken', 30), 'control');
  expect(noticed).toEqual([]);
  for (const result of [said('taken', 61), said('revoked'), said('suspended')]) gate.heard(key('active'), result);
  gate.heard(key('suspended'), said('taken'));
  gate.heard(key('active'), said('taken', 61), 'reads');
  gate.heard(key('active'), said('revoked'), 'control');
  expect(noticed).toEqual(['active', 'active', 'active', 'suspended', 'active', 'active']);
  // An expiry that was put off, taken away or brought forward.
  for (const expiresAtMs of [future, null]) gate.heard(key('active', expiresAtMs), said('expired'));
  gate.heard(key('active', past), said('taken'));
  expect(noticed).toHaveLength(9);
});

it('requests with an expired key are counted by the address of their caller', async () => {
  const key = { keyId: 'child', rateLimit: 60, accountStatus: 'active', ancestors: ['root'] } as unknown as KeyRecord;
  const { rate } = limited;
  let tokens = 2;
  const takeForAddress = (_: string, __: number, done: (result: TakeResult) => void): void =>
    done(--tokens < 0 ? limited : { outcome: 'taken', rate });
  const gate = new Gate({
    authenticator: { identify: () => key } as unknown as Authenticator,
    admission: { takeForAddress } as unknown as Admission,
    anonymousRateLimit: 60,
    refills: new RefillTimes(Date.now),
    onContradiction: () => {},
  });
  const identified = async () => gate.identify('Bearer', { address: '192.0.2.1' });
  for (let i = 0; i < 3; i++) expect(await identified()).toBe(key);
  expect(tokens).toBe(2);
  gate.heard(key, { outcome: 'expired', rate });
  expect([await identified(), await identified(), await identified()]).toEqual([key, key, null]);
});

describe('the memory of addresses over their limit', () => {
  it('forgets an address once a request from it would pass again, and is bounded', () => {
    const exhausted = new ExhaustedAddresses();
    exhausted.add('past', 0);
    exhausted.add('first', 30);
    expect(exhausted.has('past')).toBe(false);
    expect(exhausted.has('first')).toBe(true);
    for (let i = 0; i < 10_000; i++) exhausted.add(`address ${i}`, 30);
    expect(exhausted.has('first')).toBe(false);
    expect(exhausted.has('address 9999')).toBe(true);
  });
});

it('the gate remembers that a bucket is empty until a token is back, however often it refuses its key meanwhile', async () => {
  const gate = new Gate({
    authenticator: new Authenticator(new KeyCache({ fetchKeys: async () => [] }), Date.now),
    admission: {} as Admission,
    anonymousRateLimit: 60,
    refills: new RefillTimes(Date.now),
    onContradiction: () => {},
  });
  const key = { keyId: 'key', rateLimit: 300, emptyUntilMs: 0, lastRefill: 0 } as KeyRecord;
  gate.rateLimited(key, limited.rate, 'reads');
  expect(gate.emptyBucket(key)).toBeNull();
  // Half a token is there. The other half takes 100 ms.
  const startedAt = performance.now();
  gate.rateLimited(key, { limit: 300, tokens: 30_000, remaining: 0, resetSeconds: 60, retryAfterSeconds: 1 });
  expect(gate.emptyBucket(key)).toMatchObject({ limit: 300, remaining: 0, retryAfterSeconds: 1 });
  let refused = 0;
  for (let rate = gate.emptyBucket(key); rate !== null; rate = gate.emptyBucket(key)) {
    gate.rateLimited(key, rate);
    refused++;
  }
  const elapsedMs = performance.now() - startedAt;
  expect(refused).toBeGreaterThan(100);
  // The end may come a little early, never late. The machine may be slow to notice it.
  expect(elapsedMs).toBeGreaterThan(20);
  expect(elapsedMs).toBeLessThan(2_000);
});
