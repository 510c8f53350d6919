import { describe, expect, it } from 'vitest';
import { Pseudonyms } from '../../src/proxy/pseudonyms.ts';

describe('a pseudonym', () => {
  it('is stable for a buyer and a provider, differs between providers, and between installations', () => {
    const pseudonyms = new Pseudonyms('secret');
    const first = pseudonyms.of('buyer', 'provider');
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(pseudonyms.of('buyer', 'provider')).toBe(first);
    expect(new Pseudonyms('secret').of('buyer', 'provider')).toBe(first);
    expect(pseudonyms.of('buyer', 'other')).not.toBe(first);
    expect(pseudonyms.of('other', 'provider')).not.toBe(first);
    expect(new Pseudonyms('other').of('buyer', 'provider')).not.toBe(first);
  });

  it('stays the same when the cache has overflowed', () => {
    const pseudonyms = new Pseudonyms('secret');
    const first = pseudonyms.of('buyer', 'provider');
    for (let i = 0; i < 100_001; i++) pseudonyms.of(`buyer ${i}`, 'provider');
    expect(pseudonyms.of('buyer', 'provider')).toBe(first);
  });
});
