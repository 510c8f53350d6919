import { describe, expect, it } from 'vitest';
import type { Buyer } from '../../src/admission/buyer.ts';
import { Pseudonyms } from '../../src/proxy/pseudonyms.ts';

const buyer = (accountId: string): Buyer => ({
  keyId: '',
  accountId,
  admitKeys: '',
  settleKeys: '',
  chain: null,
  providerId: '',
  pseudonym: '',
  refundKeys: '',
});

describe('a pseudonym', () => {
  it('is always the same for a buyer and a provider, and differs by provider and by installation', () => {
    const pseudonyms = new Pseudonyms('secret');
    const first = pseudonyms.of(buyer('buyer'), 'provider');
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(pseudonyms.of(buyer('buyer'), 'provider')).toBe(first);
    expect(new Pseudonyms('secret').of(buyer('buyer'), 'provider')).toBe(first);
    expect(pseudonyms.of(buyer('buyer'), 'other')).not.toBe(first);
    expect(pseudonyms.of(buyer('other'), 'provider')).not.toBe(first);
    expect(new Pseudonyms('other').of(buyer('buyer'), 'provider')).not.toBe(first);
  });

  it('belongs to the provider that is called now, whichever provider the buyer called before', () => {
    const pseudonyms = new Pseudonyms('secret');
    const one = buyer('buyer');
    const of = (provider: string) => pseudonyms.of(one, provider);
    const [a, b] = [of('a'), of('b')];
    expect([of('a'), of('a'), of('b'), of('a')]).toEqual([a, a, b, a]);
    expect(a).not.toBe(b);
  });

  it('stays the same after the cache has overflowed', () => {
    const pseudonyms = new Pseudonyms('secret');
    const first = pseudonyms.of(buyer('buyer'), 'provider');
    for (let i = 0; i < 100_001; i++) pseudonyms.of(buyer(`buyer ${i}`), 'provider');
    expect(pseudonyms.of(buyer('buyer'), 'provider')).toBe(first);
  });
});
