import { expect, it } from 'vitest';
import type { Admission } from '../../src/admission/admission.ts';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import { Gate } from '../../src/gate/gate.ts';
import { RefillTimes } from '../../src/gate/refill-times.ts';
import { Authenticator } from '../../src/keys/authenticator.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { digestOf, newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { KeyCache } from '../../src/keys/key-cache.ts';
import { newCounters } from '../../src/proxy/exchange-options.ts';
import { shedCall } from '../../src/proxy/shed.ts';

const ANONYMOUS_LIMIT = 60;
const [keyId, secret] = [newKeyId(), newSecret()];
const record: KeyRecord = {
  keyId,
  accountId: 'account',
  ownerId: 'owner',
  role: 'buyer',
  ancestors: [],
  maxPriceMicros: null,
  services: null,
  expiresAtMs: null,
  secretDigest: digestOf(secret),
  previousSecretDigest: null,
  previousExpiresAtMs: 0,
  bearers: null,
  rateLimit: 120,
  status: 'active',
  accountStatus: 'active',
  suspensionReason: null,
  buyer: null,
  lastRefill: 0,
  emptyUntilMs: 0,
};

it('a shed call is answered at once from memory: neither store is asked, and no rate limit counts the call', async () => {
  let fetched = 0;
  const cache = new KeyCache({
    fetchKeys: async () => {
      fetched++;
      return [record];
    },
  });
  // Any use of these throws.
  const admission = {} as Admission;
  const authenticator = new Authenticator(cache, Date.now);
  const gate = new Gate({
    authenticator,
    admission,
    anonymousRateLimit: ANONYMOUS_LIMIT,
    refills: new RefillTimes(Date.now),
    onContradiction: () => {},
  });
  const counters = newCounters();
  const limitTold = (authorization: string | undefined): string => {
    let told = '';
    const respond = (status: number, lines: string, body: string): void => {
      expect([status, JSON.parse(body)]).toMatchObject([503, { error: 'unavailable', status: 503 }]);
      expect(lines).toMatch(/\r\nX-ACF-Amount: 0/);
      expect(lines).toContain('\r\nAccess-Control-Allow-Origin: *\r\n');
      expect(lines).toMatch(/\r\nRetry-After: 1/);
      told = /\r\nX-RateLimit-Limit: (\d+)/.exec(lines)?.[1] ?? '';
    };
    shedCall(gate, counters, { authorization } as RequestHead, { respond } as unknown as CallerStream);
    return told;
  };
  const valid = `Bearer ${keyId}:${secret}`;

  expect(limitTold(undefined)).toBe(String(ANONYMOUS_LIMIT));
  expect(limitTold(valid)).toBe(String(ANONYMOUS_LIMIT));
  expect(fetched).toBe(0);
  await cache.load(keyId);
  expect(limitTold(valid)).toBe('120');
  // Only a caller who has the key's secret learns the key's rate limit.
  expect(limitTold(`Bearer ${keyId}:${newSecret()}`)).toBe(String(ANONYMOUS_LIMIT));
  expect(counters).toMatchObject({ admitted: 0, open: 0 });
  expect(counters.refused).toEqual(new Map([['unavailable', 4]]));
});
