/** A key and its account in the form that calls need. Computed at the key's first call, and kept as long as the key is cached. */
export class Buyer {
  readonly keyId: string;
  readonly accountId: string;
  /** The encoded KEYS of admissions and of settlements (encoded-keys.ts). */
  readonly admitKeys: string;
  readonly settleKeys: string;
  /**
   * The provider that was called last and the pseudonym by which it knows this buyer: '' before the first call, then set by
   * proxy/pseudonyms.ts. The other fields never change.
   */
  providerId = '';
  pseudonym = '';

  constructor(keyId: string, accountId: string, admitKeys: string, settleKeys: string) {
    this.keyId = keyId;
    this.accountId = accountId;
    this.admitKeys = admitKeys;
    this.settleKeys = settleKeys;
  }
}
