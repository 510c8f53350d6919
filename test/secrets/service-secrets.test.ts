import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { storedSigningKeys } from '../../src/catalog/listing-secrets.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { Sealer } from '../../src/secrets/sealer.ts';
import { OVERLAP_MS, ServiceSecrets } from '../../src/secrets/service-secrets.ts';

const withKey = (): ServiceSecrets => new ServiceSecrets(new Sealer([randomBytes(32)]));
const id = uuidv7();
const signed = (signingKeys: string | null) => ({ id, upstreamHeaders: null, signingKeys });

describe('a new signing secret', () => {
  it('signs beside the one before it for a day, and ends the one before that at once', () => {
    const secrets = withKey();
    const first = secrets.newSigningKey(id, null, 1_000);
    const second = secrets.newSigningKey(id, first.stored, 2_000);
    const third = secrets.newSigningKey(id, second.stored, 3_000);
    expect(secrets.open(signed(third.stored)).signingKeys).toEqual([
      { ...third.key, untilMs: Number.POSITIVE_INFINITY },
      { ...second.key, untilMs: 3_000 + OVERLAP_MS },
    ]);
  });

  it('takes the place of one whose SECRETS_KEY was lost: calls are signed again at once, not a day later', () => {
    const lost = withKey().newSigningKey(id, null, 1_000).stored;
    const secrets = withKey();
    expect(secrets.open(signed(lost)).unreadable).toHaveLength(1);
    const { key, stored } = secrets.newSigningKey(id, lost, 2_000);
    expect(storedSigningKeys(stored)).toHaveLength(1);
    expect(secrets.open(signed(stored))).toEqual({
      ...{ headers: [], unreadable: [] },
      signingKeys: [{ ...key, untilMs: Number.POSITIVE_INFINITY }],
    });
  });
});
