/** An account's money as it is now, calls in flight included. Amounts in micro-USD. */
export type Wallet = {
  /** What can be spent. */
  readonly balanceMicros: number;
  /** What open holds of calls in flight have taken; a refund puts it back. */
  readonly heldMicros: number;
};

/** Reads the live wallet; loads it first when Redis does not have it. Rejects with `unavailable` when it cannot. */
export type WalletReader = { read(accountId: string): Promise<Wallet> };
