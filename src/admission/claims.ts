/** The idempotency key of a call, as batch.lua claims it (scripts/includes/claims.lua). All texts are digests in ASCII, without tabs. */
export type Claim = {
  /** Stands for the API key and the idempotency key together. */
  readonly name: string;
  /** Of method, path and query. */
  readonly target: string;
};

/** How the claim of a call ends, if the call is charged. If it is refunded, the claim is free again. */
export type EndedClaim = {
  readonly name: string;
  readonly charged: {
    /** Of the request body; null: the call was over before all of it had come. */
    readonly bodyDigest: string | null;
    /** Whether the answer is being kept. */
    readonly keeps: boolean;
    /** What the call cost. */
    readonly amountMicros: number;
  };
};
