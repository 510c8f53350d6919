/** A key and its account as calls name them: worked out with the first call and kept, because that never changes. */
export type Buyer = {
  readonly keyId: string;
  readonly accountId: string;
  /** KEYS of admissions and of settlements, encoded (encoded-keys.ts). */
  readonly admitKeys: string;
  readonly settleKeys: string;
  /** The provider called last, and whom it knows the buyer as (proxy/pseudonyms.ts); '' before the first call. */
  providerId: string;
  pseudonym: string;
};
