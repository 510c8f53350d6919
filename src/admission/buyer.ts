/** A key and its account in the form that calls need. Computed with the key's first call and kept: none of it ever changes. */
export type Buyer = {
  readonly keyId: string;
  readonly accountId: string;
  /** The encoded KEYS of admissions and of settlements (encoded-keys.ts). */
  readonly admitKeys: string;
  readonly settleKeys: string;
  /** The provider called last, and the pseudonym by which it knows this buyer (proxy/pseudonyms.ts); '' before the first call. */
  providerId: string;
  pseudonym: string;
};
