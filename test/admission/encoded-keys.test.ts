import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EncodedKeys } from '../../src/admission/encoded-keys.ts';
import { RedisKeys } from '../../src/platform/redis-keys.ts';
import { bulk } from '../../src/platform/trip-encoder.ts';

const id = (chars: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef-_'), minLength: chars, maxLength: chars });

it('prepared KEYS equal the encoded names, for ids of the usual length and of any other', () => {
  const names = new RedisKeys(16);
  const encoded = new EncodedKeys(names);
  fc.assert(
    fc.property(fc.oneof(id(26), id(7)), fc.oneof(id(36), id(12)), (keyId, accountId) => {
      const shard = names.shardOf(accountId);
      const open = names.open[shard] as string;
      const wallet = names.wallet(shard, accountId);
      expect(encoded.admit(keyId, accountId)).toBe([names.key(shard, keyId), wallet, open].map(bulk).join(''));
      expect(encoded.settle(accountId)).toBe([open, names.usage[shard] as string].map(bulk).join(''));
      expect(encoded.buyer(keyId, accountId)).toMatchObject({
        keyId,
        accountId,
        admitKeys: encoded.admit(keyId, accountId),
        settleKeys: encoded.settle(accountId),
      });
      const refund = [open, names.usage[shard] as string, wallet].map(bulk).join('');
      expect(encoded.refund(accountId)).toBe(refund);
      const buyer = encoded.buyer(keyId, accountId);
      for (let i = 0; i < 2; i++) expect(encoded.refundOf(buyer)).toBe(refund);
    }),
  );
});
