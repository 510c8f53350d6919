import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KeyRecord } from '../../src/keys/caller.ts';
import {
  decidingCredentials,
  derivedSecret,
  digestOf,
  digestOfHash,
  equalConstantTime,
  hashSecret,
  isKeyId,
  newKeyId,
  newSecret,
  parseBearer,
  verifyBearer,
  verifySecret,
} from '../../src/keys/credentials.ts';
import { anyText } from '../support/any-text.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

function record(fields: Partial<KeyRecord>): KeyRecord {
  return {
    keyId: newKeyId(),
    accountId: '01900000-0000-7000-8000-000000000000',
    ownerId: 'owner',
    role: 'buyer',
    ancestors: [],
    maxPriceMicros: null,
    services: null,
    expiresAtMs: null,
    secretDigest: digestOf(newSecret()),
    previousSecretDigest: null,
    previousExpiresAtMs: 0,
    bearers: null,
    rateLimit: 60,
    status: 'active',
    accountStatus: 'active',
    suspensionReason: null,
    buyer: null,
    lastRefill: 0,
    emptyUntilMs: 0,
    ...fields,
  };
}

describe('new credentials', () => {
  it('have the documented form, and no two are equal', () => {
    const ids = Array.from({ length: 500 }, newKeyId);
    const secrets = Array.from({ length: 500 }, newSecret);
    for (const id of ids) expect(id).toMatch(/^acf_[0-9A-Za-z]{22}$/);
    for (const secret of secrets) expect(secret).toMatch(/^sk_[0-9A-Za-z]{49}$/);
    expect(new Set(ids).size).toBe(500);
    expect(new Set(secrets).size).toBe(500);
  });

  it('end in the CRC-32 of their 43 random characters, as zlib computes it', () => {
    for (let i = 0; i < 200; i++) {
      const secret = newSecret();
      const digits = [...secret.slice(-6)].reduce((sum, char) => sum * 62 + BASE62.indexOf(char), 0);
      expect(digits).toBe(crc32(secret.slice(3, 46)));
    }
  });

  it('use every base62 character equally often', () => {
    const counts = new Map<string, number>();
    const draws = 3000;
    for (let i = 0; i < draws; i++) {
      for (const char of newKeyId().slice(4)) counts.set(char, (counts.get(char) ?? 0) + 1);
    }
    const expected = (draws * 22) / 62;
    expect(counts.size).toBe(62);
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // 61 degrees of freedom: above 140 once in ten million runs. A modulo bias towards 8 characters gives over 300.
    expect(chiSquare).toBeLessThan(140);
  });
});

describe('an Authorization header', () => {
  const keyId = newKeyId();
  const secret = newSecret();

  it('with valid credentials is parsed, whatever the case of the scheme', () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
      expect(parseBearer(`${scheme} ${keyId}:${secret}`)).toEqual({ keyId, secret });
    }
  });

  it.each([
    ['empty', ''],
    ['the scheme alone', 'Bearer '],
    ['another scheme', `Basics ${keyId}:${secret}`],
    ['no scheme', `${keyId}:${secret}`],
    ['two spaces', `Bearer  ${keyId}:${secret}`],
    ['a tab instead of the space', `Bearer\t${keyId}:${secret}`],
    ['a leading space', ` Bearer ${keyId}:${secret}`],
    ['a trailing space', `Bearer ${keyId}:${secret} `],
    ['a trailing line feed', `Bearer ${keyId}:${secret}\n`],
    ['no colon', `Bearer ${keyId}${secret}x`],
    ['another prefix of the key id', `Bearer acg_${keyId.slice(4)}:${secret}`],
    ['the prefix in capitals', `Bearer ACF_${keyId.slice(4)}:${secret}`],
    ['another prefix of the secret', `Bearer ${keyId}:pk_${secret.slice(3)}`],
    ['a character outside base62 in the key id', `Bearer ${keyId.slice(0, -1)}-:${secret}`],
    ['a character beyond Latin-1 whose low byte is a digit', `Bearer ${keyId.slice(0, -1)}\u0130:${secret}`],
    ['the key id alone', `Bearer ${keyId}`],
    ['a megabyte', `Bearer ${keyId}:${secret}${'a'.repeat(1 << 20)}`],
  ])('%s is refused', (_name, header) => {
    expect(parseBearer(header)).toBeNull();
  });

  it('with one mistyped or swapped character in the secret is refused without a look-up', () => {
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 51 }), fc.constantFrom(...BASE62), (at, char) => {
        fc.pre(secret[at] !== char);
        const typo = secret.slice(0, at) + char + secret.slice(at + 1);
        expect(parseBearer(`Bearer ${keyId}:${typo}`)).toBeNull();
      }),
    );
    for (let at = 3; at < 51; at++) {
      if (secret[at] === secret[at + 1]) continue;
      const swapped = secret.slice(0, at) + secret[at + 1] + secret[at] + secret.slice(at + 2);
      expect(parseBearer(`Bearer ${keyId}:${swapped}`)).toBeNull();
    }
  });

  it('never throws, and accepts nothing but the grammar', () => {
    const grammar = /^bearer acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}$/i;
    const valid = fc.constant(`Bearer ${keyId}:${secret}`);
    const mutated = fc
      .tuple(valid, fc.integer({ min: 0, max: 85 }), anyText({ minLength: 1, maxLength: 2 }))
      .map(([text, at, put]) => text.slice(0, at) + put + text.slice(at + put.length));
    fc.assert(
      fc.property(fc.oneof(mutated, fc.string({ maxLength: 100 })), (header) => {
        const parsed = parseBearer(header);
        if (parsed !== null) {
          expect(header).toMatch(grammar);
          expect(header.slice(7)).toBe(`${parsed.keyId}:${parsed.secret}`);
        }
      }),
      { numRuns: 800 },
    );
  });
});

describe('if both Authorization and X-Api-Key are sent', () => {
  const ours = `${newKeyId()}:${newSecret()}`;
  const wrong = `${ours.slice(0, -1)}${ours.endsWith('0') ? '1' : '0'}`;

  it('the first decides if it has our form, whether its secret is right or wrong', () => {
    for (const authorization of [`Bearer ${ours}`, `bearer ${ours}`, `Bearer ${wrong}`]) {
      expect(decidingCredentials(authorization, undefined)).toBe(authorization);
      expect(decidingCredentials(authorization, 'sk-ant-api03-x')).toBe(authorization);
      expect(decidingCredentials(authorization, `${newKeyId()}:${newSecret()}`)).toBe(authorization);
    }
  });

  it.each([
    undefined,
    '',
    'Bearer sk-ant-oat01-x',
    'Basic YTpi',
    `Basic ${ours}`,
    `Basics ${ours}`,
    `Bearer ${ours}x`,
    `Bearer ${ours.slice(1)}`,
    `Bearer  ${ours}`.slice(0, 86),
    'Bearer '.padEnd(86, 'x'),
  ])('the second decides if the first is %s', (authorization) => {
    expect(decidingCredentials(authorization, ours)).toBe(`Bearer ${ours}`);
    expect(decidingCredentials(authorization, undefined)).toBe(authorization);
  });
});

describe('a secret', () => {
  it('is stored only as its SHA-256', () => {
    const secret = newSecret();
    expect(hashSecret(secret)).toBe(createHash('sha256').update(secret).digest('hex'));
  });

  it('has the same digest as the one computed from its stored hash', () => {
    const secret = newSecret();
    expect(digestOf(secret)).toBe(createHash('sha256').update(secret).digest('binary'));
    expect(digestOfHash(hashSecret(secret))).toBe(digestOf(secret));
  });

  it('opens only its own key', () => {
    const secret = newSecret();
    expect(verifySecret(record({ secretDigest: digestOf(secret) }), secret, () => 0)).toBe(true);
    expect(verifySecret(record({}), secret, () => 0)).toBe(false);
  });

  it('from before a rotation is valid to the millisecond until its overlap ends', () => {
    const previous = newSecret();
    const present = newSecret();
    const rotated = record({
      secretDigest: digestOf(present),
      previousSecretDigest: digestOf(previous),
      previousExpiresAtMs: 1000,
    });
    expect(verifySecret(rotated, previous, () => 999)).toBe(true);
    expect(verifySecret(rotated, previous, () => 1000)).toBe(false);
    expect(verifySecret(rotated, present, () => 5000)).toBe(true);
    expect(verifySecret(rotated, newSecret(), () => 999)).toBe(false);
  });

  it('is checked first: the current secret needs no clock, even for a key that is signed in or rotated', () => {
    const secret = newSecret();
    const bearers = [{ digest: digestOf(newSecret()), expiresAtMs: 1 }];
    const busy = record({ secretDigest: digestOf(secret), previousSecretDigest: digestOf(newSecret()), bearers });
    const never = (): number => {
      throw new Error('the clock was read');
    };
    expect(verifySecret(busy, secret, never)).toBe(true);
  });

  it('of a bearer is valid to the millisecond until it expires, and is not the secret of the key', () => {
    const bearer = newSecret();
    const signedIn = record({
      bearers: [
        { digest: digestOf(newSecret()), expiresAtMs: 9_000 },
        { digest: digestOf(bearer), expiresAtMs: 1_000 },
      ],
    });
    expect([999, 1_000].map((nowMs) => verifyBearer(signedIn, bearer, () => nowMs))).toEqual([true, false]);
    expect(verifySecret(signedIn, bearer, () => 0)).toBe(false);
    expect(verifyBearer(signedIn, newSecret(), () => 0)).toBe(false);
    expect(verifyBearer(record({}), bearer, () => 0)).toBe(false);
  });

  it('that is derived looks like any other, and differs for each key and text', () => {
    const made = ['a', 'b'].flatMap((key) => ['1', '2'].map((text) => derivedSecret(key, text)));
    expect(new Set(made).size).toBe(4);
    for (const secret of made) expect(parseBearer(`Bearer ${newKeyId()}:${secret}`)).toMatchObject({ secret });
    expect(derivedSecret('a', '1')).toBe(made[0]);
    // A digest with zeros in front has as many digits.
    for (let n = 0; n < 500; n++) expect(derivedSecret('a', String(n))).toHaveLength(52);
  });

  it('is compared at every position', () => {
    const a = hashSecret('a');
    for (let at = 0; at < 64; at++) {
      const other = a.slice(0, at) + (a[at] === '0' ? '1' : '0') + a.slice(at + 1);
      expect(equalConstantTime(a, other)).toBe(false);
    }
    expect(equalConstantTime(a, hashSecret('a'))).toBe(true);
    expect(equalConstantTime(a, a.slice(1))).toBe(false);
  });

  it('is distinguished from a key id and from other text', () => {
    expect(isKeyId(newKeyId())).toBe(true);
    for (const text of ['', 'acf_', newSecret(), `${newKeyId()}x`, `${newKeyId()}\n`])
      expect(isKeyId(text)).toBe(false);
  });
});
