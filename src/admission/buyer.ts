import { bulk } from '../platform/trip-encoder.ts';

/** An API key of an account, and the keys above it, root first. */
export type KeyInTree = { readonly keyId: string; readonly accountId: string; readonly ancestors?: readonly string[] };

/** The keys from below the root of a tree to the child key itself, in the form of batch.lua. */
export type Chain = {
  readonly rootId: string;
  /** At most three: the last is the child key. */
  readonly keyIds: readonly string[];
  /** The argument of the commands of child keys. */
  readonly arg: string;
};

/** @param ancestors  the keys above the key, root first. @returns null for a key without a parent */
export function chainOf(keyId: string, ancestors: readonly string[]): Chain | null {
  const [rootId] = ancestors;
  if (rootId === undefined) return null;
  const keyIds = [...ancestors.slice(1), keyId];
  return { rootId, keyIds, arg: bulk(keyIds.join(' ')) };
}

/** A key and its account in the form that calls need. Computed at the key's first call, and kept as long as the key is cached. */
export class Buyer {
  readonly keyId: string;
  readonly accountId: string;
  /** The encoded KEYS of admissions and of settlements (encoded-keys.ts). */
  readonly admitKeys: string;
  readonly settleKeys: string;
  /** Null: the key has no parent. */
  readonly chain: Chain | null;
  /**
   * The provider that was called last and the pseudonym by which it knows this buyer: '' before the first call, then set by
   * proxy/pseudonyms.ts.
   */
  providerId = '';
  pseudonym = '';
  /** The encoded KEYS of refunds and captures: '' before the first, then set by encoded-keys.ts. The other fields never change. */
  refundKeys = '';

  constructor(keyId: string, accountId: string, admitKeys: string, settleKeys: string, chain: Chain | null = null) {
    this.keyId = keyId;
    this.accountId = accountId;
    this.admitKeys = admitKeys;
    this.settleKeys = settleKeys;
    this.chain = chain;
  }
}
