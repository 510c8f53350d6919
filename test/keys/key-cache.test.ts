import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { KeyCache, type KeyCacheOptions } from '../../src/keys/key-cache.ts';
import { applyKeyChange } from '../../src/keys/key-feed.ts';

/** A stand-in for Postgres. The test releases its answers by hand; each has the data as of when the query was made. */
class Source {
  readonly rows = new Map<string, KeyRecord>();
  readonly queries: string[][] = [];
  away = false;
  #held: (() => void)[] | null = null;

  set(keyId: string, rateLimit = 60, accountId = 'account-1'): void {
    const secretDigest = 'a'.repeat(32);
    const rest = {
      ancestors: [],
      maxPriceMicros: null,
      services: null,
      expiresAtMs: null,
      previousSecretDigest: null,
      previousExpiresAtMs: 0,
      bearers: null,
      status: 'active',
      accountStatus: 'active',
      suspensionReason: null,
      buyer: null,
      lastRefill: 0,
      emptyUntilMs: 0,
    } as const;
    this.rows.set(keyId, { keyId, accountId, ownerId: 'o', role: 'buyer', secretDigest, rateLimit, ...rest });
  }

  readonly fetch = async (keyIds: readonly string[]): Promise<KeyRecord[]> => {
    this.queries.push([...keyIds]);
    const answer = keyIds.flatMap((id) => this.rows.get(id) ?? []);
    if (this.#held !== null) await new Promise<void>((resolve) => this.#held?.push(resolve));
    if (this.away) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    return answer;
  };

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    for (const resolve of this.#held ?? []) resolve();
    this.#held = null;
  }
}

function makeCache(source: Source, options: Partial<KeyCacheOptions> = {}): KeyCache {
  return new KeyCache({ fetchKeys: source.fetch, refreshPauseMs: 5, loadGapMs: 0, ...options });
}

describe('the key cache', () => {
  it('asks Postgres once for a key, and asks again only after the key changed', async () => {
    const source = new Source();
    source.set('k');
    const cache = makeCache(source);
    expect(cache.get('k')).toBeUndefined();
    expect((await cache.load('k'))?.rateLimit).toBe(60);
    await cache.load('k');
    expect(cache.get('k')?.rateLimit).toBe(60);
    expect(source.queries).toHaveLength(1);
    source.set('k', 5);
    cache.invalidate('k');
    expect(cache.get('k')).toBeUndefined();
    expect((await cache.load('k'))?.rateLimit).toBe(5);
  });

  it('lets concurrent callers for one key share one query', async () => {
    const source = new Source();
    source.set('k');
    const cache = makeCache(source);
    const records = await Promise.all(Array.from({ length: 50 }, () => cache.load('k')));
    expect(source.queries).toEqual([['k']]);
    expect(new Set(records).size).toBe(1);
  });

  it('does not store a record that was read before a change that was announced during the read', async () => {
    const source = new Source();
    source.set('k', 60);
    const cache = makeCache(source);
    source.hold();
    const early = cache.load('k');
    source.set('k', 5);
    cache.invalidate('k');
    const late = cache.load('k');
    source.release();
    expect((await late)?.rateLimit).toBe(5);
    await early;
    expect(cache.get('k')?.rateLimit).toBe(5);
  });

  it.each(['account', 'reconnect'] as const)(
    'does not store such a record even if the only message is: %s',
    async (what) => {
      const source = new Source();
      source.set('k', 60);
      const cache = makeCache(source);
      source.hold();
      const early = cache.load('k');
      source.set('k', 5);
      if (what === 'account') cache.invalidateAccount('account-1');
      else cache.markAllStale();
      source.release();
      await early;
      expect(cache.get('k')).toBeUndefined();
      expect((await cache.load('k'))?.rateLimit).toBe(5);
    },
  );

  it('remembers for a while that a key does not exist, and learns at once when the key is created', async () => {
    const source = new Source();
    const cache = makeCache(source, { absentForMs: 30 });
    for (let i = 0; i < 10; i++) expect(await cache.load('ghost')).toBeNull();
    expect(source.queries).toHaveLength(1);
    source.set('ghost');
    cache.invalidate('ghost');
    expect(await cache.load('ghost')).not.toBeNull();
    expect(await cache.load('ghost-2')).toBeNull();
    source.set('ghost-2');
    await vi.waitFor(async () => expect(await cache.load('ghost-2')).not.toBeNull());
  });

  it('does not remember a key as missing if the key was created during the look-up', async () => {
    const source = new Source();
    const cache = makeCache(source);
    source.hold();
    const early = cache.load('k');
    source.set('k');
    cache.invalidate('k');
    source.release();
    await early;
    expect(await cache.load('k')).not.toBeNull();
  });

  it('is bounded, and keeps the records in use', async () => {
    const source = new Source();
    const cache = makeCache(source, { maxKeys: 100 });
    source.set('hot');
    await cache.load('hot');
    for (let i = 0; i < 1_000; i++) {
      source.set(`k${i}`);
      await cache.load(`k${i}`);
      if (i % 40 === 0) expect(cache.get('hot'), `after ${i} others`).toBeDefined();
      expect(cache.size).toBeLessThanOrEqual(100);
    }
    expect(cache.get('k0')).toBeUndefined();
    expect(cache.get('k999')).toBeDefined();
  });

  it('bounds the number of non-existent ids that it remembers', async () => {
    const source = new Source();
    const cache = makeCache(source, { maxAbsent: 3, absentForMs: 60_000 });
    for (const id of ['a', 'b', 'c', 'd']) await cache.load(id);
    source.queries.length = 0;
    for (const id of ['d', 'c', 'b']) await cache.load(id);
    expect(source.queries).toEqual([]);
    await cache.load('a');
    expect(source.queries).toEqual([['a']]);
  });

  it('forgets all keys of an account that changed, and no others', async () => {
    const source = new Source();
    const cache = makeCache(source, { maxKeys: 4 });
    for (const [id, account] of [
      ['a1', 'a'],
      ['b1', 'b'],
      ['a2', 'a'],
      ['b2', 'b'],
    ] as const) {
      source.set(id, 60, account);
      await cache.load(id);
    }
    applyKeyChange(cache, 'account:a');
    expect(['a1', 'a2', 'b1', 'b2'].filter((id) => cache.get(id) !== undefined)).toEqual(['b1', 'b2']);
    applyKeyChange(cache, 'b1');
    expect(cache.get('b1')).toBeUndefined();
  });
});

describe('look-ups of unknown keys', () => {
  it('share a query if they come at about the same time, and each key is read once', async () => {
    const source = new Source();
    const ids = Array.from({ length: 600 }, (_, i) => `k${i}`);
    for (const id of ids) source.set(id);
    const cache = makeCache(source);
    const records = await Promise.all([...ids, ...ids, 'ghost'].map((id) => cache.load(id)));
    expect(records.map((record) => record?.keyId ?? null)).toEqual([...ids, ...ids, null]);
    expect(source.queries.map(({ length }) => length)).toEqual([256, 256, 89]);
    expect(new Set(source.queries.flat()).size).toBe(601);
  });

  it('are part of the next query if they come while a query is under way', async () => {
    const source = new Source();
    const cache = makeCache(source);
    source.hold();
    const loads = [cache.load('a')];
    await vi.waitFor(() => expect(source.queries).toHaveLength(1));
    loads.push(...['b', 'c', 'd'].map((id) => cache.load(id)));
    source.release();
    await Promise.all(loads);
    expect(source.queries).toEqual([['a'], ['b', 'c', 'd']]);
  });

  it('do not fail with the query of others whose connection was cut', async () => {
    const cut = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    let fail = (_: Error): void => {};
    const queries: (readonly string[])[] = [];
    const fetchKeys = (ids: readonly string[]): Promise<KeyRecord[]> => {
      queries.push(ids);
      return queries.length > 1 ? Promise.resolve([]) : new Promise((_, reject) => (fail = reject));
    };
    const cache = new KeyCache({ fetchKeys, loadGapMs: 0 });
    const first = cache.load('a');
    await vi.waitFor(() => expect(queries).toHaveLength(1));
    const second = cache.load('b');
    fail(cut);
    await expect(first).rejects.toMatchObject({ code: 'unavailable', status: 503 });
    expect(await second).toBeNull();
    expect(queries).toEqual([['a'], ['b']]);
  });

  it('do not fail because of another key that cannot be read', async () => {
    const source = new Source();
    for (const id of ['a', 'b', 'c', 'd']) source.set(id);
    const fetchKeys = (ids: readonly string[]): Promise<KeyRecord[]> =>
      ids.includes('c') ? Promise.reject(new TypeError('c')) : source.fetch(ids);
    const cache = makeCache(source, { fetchKeys });
    const loads = await Promise.allSettled(['a', 'b', 'c', 'd'].map((id) => cache.load(id)));
    expect(loads.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
  });
});

describe('after messages may have been missed', () => {
  it('every key is still served at once, and is reread in the background in few queries', async () => {
    const source = new Source();
    const cache = makeCache(source);
    for (let i = 0; i < 300; i++) {
      source.set(`k${i}`);
      await cache.load(`k${i}`);
      source.set(`k${i}`, 7);
    }
    source.queries.length = 0;
    cache.markAllStale();
    for (let i = 0; i < 300; i++) expect(cache.get(`k${i}`)?.rateLimit).toBe(60);
    await vi.waitFor(() => expect(cache.get('k299')?.rateLimit).toBe(7));
    for (let i = 0; i < 300; i++) expect(cache.get(`k${i}`)?.rateLimit).toBe(7);
    expect(source.queries.map((ids) => ids.length)).toEqual([256, 44]);
  });

  it('keys that no longer exist are dropped', async () => {
    const source = new Source();
    source.set('k');
    const cache = makeCache(source);
    await cache.load('k');
    source.rows.clear();
    cache.markAllStale();
    cache.get('k');
    await vi.waitFor(() => expect(cache.get('k')).toBeUndefined());
  });

  it('known keys are served while Postgres is away, with a bounded number of attempts, and are reread when it is back', async () => {
    const source = new Source();
    source.set('k', 60);
    const cache = makeCache(source, { refreshPauseMs: 50 });
    await cache.load('k');
    source.set('k', 9);
    source.away = true;
    cache.markAllStale();
    source.queries.length = 0;
    const began = performance.now();
    while (performance.now() - began < 120) {
      expect(cache.get('k')?.rateLimit).toBe(60);
      expect((await cache.load('k'))?.rateLimit).toBe(60);
      await sleep(1);
    }
    expect(source.queries.length).toBeLessThanOrEqual(4);
    source.away = false;
    await vi.waitFor(() => expect(cache.get('k')?.rateLimit).toBe(9));
  });

  it('a refresh does not restore a record that changed during the refresh', async () => {
    const source = new Source();
    source.set('k', 60);
    const cache = makeCache(source);
    await cache.load('k');
    cache.markAllStale();
    source.hold();
    cache.get('k');
    await vi.waitFor(() => expect(source.queries).toHaveLength(2));
    source.set('k', 5);
    cache.invalidate('k');
    source.release();
    await new Promise(setImmediate);
    expect(cache.get('k')).toBeUndefined();
    expect((await cache.load('k'))?.rateLimit).toBe(5);
  });
});

describe('with Postgres away', () => {
  const refused = { code: 'unavailable', status: 503, headers: { 'Retry-After': '1' } };

  it('an unknown key is unavailable, and the cache does not remember this', async () => {
    const source = new Source();
    source.set('k');
    source.away = true;
    const cache = makeCache(source);
    await expect(cache.load('k')).rejects.toMatchObject(refused);
    source.away = false;
    expect(await cache.load('k')).not.toBeNull();
  });

  it('waits for unknown keys are bounded in time and number, even if Postgres reports no error', async () => {
    const source = new Source();
    const cache = makeCache(source, { loadTimeoutMs: 20, maxLoads: 2 });
    source.hold();
    const slow = [cache.load('a'), cache.load('b')];
    await expect(cache.load('c')).rejects.toMatchObject(refused);
    for (const load of slow) await expect(load).rejects.toMatchObject(refused);
    // Postgres is still busy with the two queries: there must be no third before one of them has ended.
    await expect(cache.load('c')).rejects.toMatchObject(refused);
    source.release();
    await vi.waitFor(async () => expect(await cache.load('c')).toBeNull());
  });

  it('an error that is a bug of ours is not reported as an outage', async () => {
    const cache = new KeyCache({ fetchKeys: () => Promise.reject(new TypeError('bug')) });
    await expect(cache.load('k')).rejects.toThrow(TypeError);
  });
});

it('the cache ends up with the records of Postgres after any order of changes, messages, reads and answers', async () => {
  const step = fc.record({
    what: fc.constantFrom('change', 'load', 'get', 'stale', 'hold', 'release', 'remove'),
    key: fc.constantFrom('a', 'b', 'c'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const source = new Source();
      const cache = makeCache(source, { maxKeys: 4 });
      const loads: Promise<unknown>[] = [];
      let version = 1;
      for (const { what, key } of steps) {
        if (what === 'change') source.set(key, ++version);
        if (what === 'remove') source.rows.delete(key);
        if (what === 'change' || what === 'remove') cache.invalidate(key);
        if (what === 'load') loads.push(cache.load(key));
        if (what === 'get') cache.get(key);
        if (what === 'stale') cache.markAllStale();
        if (what === 'hold') source.hold();
        if (what === 'release') source.release();
        await null;
      }
      source.release();
      await Promise.all(loads);
      await new Promise(setImmediate);
      for (const key of ['a', 'b', 'c']) expect(await cache.load(key)).toEqual(source.rows.get(key) ?? null);
    }),
    { numRuns: 300 },
  );
});
