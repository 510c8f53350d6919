/** A key and its account in the form that calls need. Computed at the key's first call, and kept as long as the key is cached. */
export class Buyer {
    keyId;
    accountId;
    /** The encoded KEYS of admissions and of settlements (encoded-keys.ts). */
    admitKeys;
    settleKeys;
    /**
     * The provider that was called last and the pseudonym by which it knows this buyer: '' before the first call, then set by
     * proxy/pseudonyms.ts. The other fields never change.
     */
    providerId = '';
    pseudonym = '';
    constructor(keyId, accountId, admitKeys, settleKeys) {
        this.keyId = keyId;
        this.accountId = accountId;
        this.admitKeys = admitKeys;
        this.settleKeys = settleKeys;
    }
}
//# sourceMappingURL=buyer.js.map