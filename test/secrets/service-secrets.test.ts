import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { originOf, storedSigningKeys } from '../../src/catalog/listing-secrets.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { OVERLAP_MS, ServiceSecrets } from '../../src/secrets/service-secrets.ts';
import { parseEndpoint } from '../../src/upstream/index.ts';

const withKey = (): ServiceSecrets => new ServiceSecrets(new Sealer([randomBytes(32)]));
const id = uuidv7();
const endpoint = 'https://service.example/v1';
const signed = (signingKeys: string | null) => ({
  id,
  endpoint,
  upstreamHeaders: null,
  upstreamQuery: null,
  signingKeys,
});

it.each([
  ['header', 'headers'],
  ['query', 'query'],
] as const)(
  'a secret for the %s opens for its listing, its name and the origin of the endpoint, in any spelling of that origin',
  (kind, member) => {
    const secrets = withKey();
    const sealed = secrets.seal(kind, { id, endpoint }, [['x-key', 'secret']]);
    const opened = (changed: object) =>
      secrets.open({
        ...signed(null),
        ...(kind === 'header' ? { upstreamHeaders: sealed } : { upstreamQuery: sealed }),
        ...changed,
      })[member];
    for (const same of [endpoint, 'HTTPS://Service.Example:443', 'https://service.example./v2/']) {
      expect(originOf(same)).toBe(originOf(endpoint));
      expect(opened({ endpoint: same })).toEqual([['x-key', 'secret']]);
    }
    const renamed = sealed?.replace('x-key', 'x-other');
    const others = ['http://service.example', 'https://service.example:8443', 'https://other.example'];
    for (const changed of [
      { id: uuidv7() },
      { upstreamHeaders: renamed, upstreamQuery: renamed },
      // What is sealed for a header does not open in the query, nor the other way round.
      { upstreamHeaders: kind === 'query' ? sealed : null, upstreamQuery: kind === 'header' ? sealed : null },
      ...others.map((other) => ({ endpoint: other })),
    ]) {
      expect(opened(changed)).toEqual([]);
    }
  },
);

it.each([
  'http://a.example',
  'https://a.example',
  'HTTPS://A.Example.:443/v1',
  'http://a.example:443',
  'http://0x7f.1:80',
  'https://[::0001]/',
  'http://[::ffff:127.0.0.1]:8080',
  'https://bücher.example',
  'http://127.0.0.1:3000',
])('the origin of %s is the one that the upstream client connects to', (spelled) => {
  expect(originOf(spelled)).toBe(parseEndpoint(spelled).origin.key);
});

describe('a new signing secret', () => {
  it('is used beside its predecessor for a day, and ends an even older one at once', () => {
    const secrets = withKey();
    const first = secrets.newSigningKey(id, null, 1_000);
    const second = secrets.newSigningKey(id, first.stored, 2_000);
    const third = secrets.newSigningKey(id, second.stored, 3_000);
    expect(secrets.open(signed(third.stored)).signingKeys).toEqual([
      { ...third.key, untilMs: Number.POSITIVE_INFINITY },
      { ...second.key, untilMs: 3_000 + OVERLAP_MS },
    ]);
  });

  it('replaces one whose SECRETS_KEY was lost: calls are signed again at once, not a day later', () => {
    const lost = withKey().newSigningKey(id, null, 1_000).stored;
    const secrets = withKey();
    expect(secrets.open(signed(lost)).unreadable).toHaveLength(1);
    const { key, stored } = secrets.newSigningKey(id, lost, 2_000);
    expect(storedSigningKeys(stored)).toHaveLength(1);
    expect(secrets.open(signed(stored))).toEqual({
      headers: [],
      query: [],
      unreadable: [],
      signingKeys: [{ ...key, untilMs: Number.POSITIVE_INFINITY }],
    });
  });
});
