import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Sealer } from '../../src/secrets/sealer.ts';
import { anyText } from '../support/any-text.ts';

const [OLD, NEW, OTHER] = [randomBytes(32), randomBytes(32), randomBytes(32)] as const;
const place = fc.string();
const text = anyText();

describe('a sealed text', () => {
  it('opens in the context for which it was sealed, with any key of the old list, wherever that key now is in the list', () => {
    fc.assert(
      fc.property(text, place, (secret, at) => {
        const sealed = new Sealer([OLD]).seal(secret, at);
        for (const keys of [[OLD], [NEW, OLD], [OLD, NEW], [OTHER, NEW, OLD]]) {
          expect(new Sealer(keys).open(sealed, at)).toBe(secret);
        }
      }),
    );
  });

  it('does not open in another context, or without its key', () => {
    fc.assert(
      fc.property(text, place, place, (secret, at, elsewhere) => {
        fc.pre(at !== elsewhere);
        const sealed = new Sealer([NEW, OLD]).seal(secret, at);
        expect(new Sealer([NEW]).open(sealed, elsewhere)).toBeNull();
        for (const keys of [[], [OLD], [OTHER, OLD]]) expect(new Sealer(keys).open(sealed, at)).toBeNull();
      }),
    );
  });

  it('does not open after any change to its text', () => {
    const sealer = new Sealer([NEW, OLD]);
    const character = fc.constantFrom(...':=AZaz09-_+/ .\n');
    fc.assert(
      fc.property(text, fc.nat(), character, fc.constantFrom('put', 'insert', 'cut'), (secret, at, char, how) => {
        const sealed = sealer.seal(secret, 'here');
        const i = at % sealed.length;
        const changed = sealed.slice(0, i) + (how === 'cut' ? '' : char) + sealed.slice(how === 'insert' ? i : i + 1);
        fc.pre(changed !== sealed);
        expect(sealer.open(changed, 'here')).toBeNull();
      }),
      { numRuns: 1_000 },
    );
    for (const nonsense of ['', ':', 's1::', 's1:0:', 's1:0:AAAA']) expect(sealer.open(nonsense, 'here')).toBeNull();
  });

  it('does not open with a truncated tag, which would be easy to forge', () => {
    const sealer = new Sealer([NEW]);
    const [version, name, encoded = ''] = sealer.seal('a secret of some length', 'here').split(':');
    const bytes = Buffer.from(encoded, 'base64url');
    for (let length = 0; length < bytes.length; length++) {
      expect(sealer.open(`${version}:${name}:${bytes.subarray(0, length).toString('base64url')}`, 'here')).toBeNull();
    }
  });

  it('does not contain the secret or the key, and differs each time', () => {
    const sealer = new Sealer([NEW]);
    const sealed = Array.from({ length: 100 }, () => sealer.seal('sk-provider-secret', 'here'));
    expect(new Set(sealed).size).toBe(100);
    for (const each of sealed) {
      const bytes = Buffer.from(each.split(':')[2] as string, 'base64url').toString('latin1');
      expect(each + bytes).not.toContain('provider');
      expect(each).not.toContain(NEW.toString('hex').slice(0, 16));
    }
  });

  it('is current if the first key sealed it', () => {
    const sealed = new Sealer([OLD]).seal('x', 'here');
    expect(new Sealer([OLD, NEW]).isCurrent(sealed)).toBe(true);
    for (const keys of [[NEW, OLD], [NEW], []]) expect(new Sealer(keys).isCurrent(sealed)).toBe(false);
  });
});

it('nothing can be sealed without a key', () => {
  expect(new Sealer([]).canSeal).toBe(false);
  expect(() => new Sealer([]).seal('x', 'here')).toThrow('no key');
});
