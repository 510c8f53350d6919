/** The idempotency key of a call, as batch.lua claims it (scripts/includes/claims.lua). All texts are digests in ASCII, without tabs. */
export type Claim = {
  /** The digest of the API key and the idempotency key together. */
  readonly name: string;
  /** The digest of method, path and query. */
  readonly target: string;
};

/** How the claim of a call ends, if the call is charged. If it is refunded, the claim is free again. */
export type EndedClaim = {
  readonly name: string;
  readonly charged: {
    /** The digest of the request body; null: the call was over before the whole body had arrived. */
    readonly bodyDigest: string | null;
    /** Whether the answer is being kept. */
    readonly keeps: boolean;
    /** What the call cost. */
    readonly amountMicros: number;
  };
};
