// The checks of the rule. Each is a switch: the model explores what happens without it.

export const CHECKS = {
  trimMark: 'the trim goes on only where it finds the mark that its flush saw',
  pageThere: 'a flush stores a page only if its last entry is still in the stream',
  pageBegins: '… and only if its first entry is',
  olderPostgres: 'a mark that the journal lacks fences',
  dataId: 'another data id is doubt',
  replicationId: 'the data id has the replication id',
  token: 'a mark has a random token',
  acceptMark: 'accepting an older Postgres leaves a mark of its own in Redis',
  fillMark: 'a wallet is filled only where Redis has the mark that was seen, or that of the last flush',
  fillDeadline: 'a fill that arrives after its deadline is refused',
  loadLock: 'wallets are not loaded during a flush',
  doubtOnly: 'a drift is repaired only in doubt',
  rejected: 'a rejected event bars repairs of its account',
  ahead: 'a wallet ahead of Postgres is not repaired',
  staysInDoubt: 'a wallet ahead of Postgres stays in doubt when its shard is verified',
  leaveOutDoubt: 'no comparison is left out in doubt',
  leaveOutTwo: 'a comparison is left out only if two have found the same',
  leaveOutPosted: 'no comparison is left out after something was posted',
  began: 'a clean comparison verifies the doubt with which it began',
  ticket: 'a repair needs the ticket of its reading',
  repairPeriod: 'a repair leaves a budget that a call has opened a later period of',
  repairSpent: 'a repair corrects what a budget has spent, and its period',
  holdPeriod: 'what comes back leaves a budget only in the period that its hold names',
  laterPeriod: 'a call opens no period of a budget that is over: a clock may be set back',
  loadedSpent: 'a wallet is loaded with what budgets have spent',
  refundPeriod: 'a refund of a call lowers a budget only in the period in which the call counted',
  refundMissing: 'a comparison counts what refunds that the wallet lacks have not yet lowered',
  refundTicket: 'a refund that lowers a budget takes the ticket of a repair',
  repairMark: 'a repair needs the mark of its reading, or that of the last flush',
  repairDeadline: 'a repair that arrives after its deadline is refused',
  storedHolds: 'holds of stored calls are removed',
  endsOnce: 'a call that has an event counts once, although its hold is there, too',
  sweepWaits: 'the sweep waits for a clean comparison of these data',
  dropMark: 'a wallet is dropped only where Redis has the mark that was seen, or that of the last flush',
  dropAhead: 'a wallet with a credit or a debit that Postgres does not know stays',
  dropIdle: 'a wallet with holds or events stays',
  dropDebit: 'a wallet with a begun debit stays',
  claimed: 'a call whose idempotency key another one has is not admitted',
  claimAtOnce: '… and that is looked at in the step that takes the money',
  claimOver: 'a claim is under way only while its call has a hold',
  claimUnknown: '… and without it nobody is charged for the key',
  claimFreed: 'what ends a call that costs nothing frees its key',
  claimOwner: '… where the key is that of the call',
  warning: 'a commit that came back with a warning counts as failed',
} as const;

export type Check = keyof typeof CHECKS;

/** What may happen in a history. */
export type Scenario = {
  readonly name: string;
  readonly calls: number;
  /** The second call is free: it uses up a free call instead of money. */
  readonly free?: boolean;
  /** Both calls count in a budget: by the clock, which may be set back, the first in its first period and the second in its second. */
  readonly budget?: boolean;
  /** The second call is priced by use: it may be charged a part of what it holds. */
  readonly byUse?: boolean;
  readonly credit?: boolean;
  /** The first call is given back when it is stored, by a credit that lowers its budget. */
  readonly refund?: boolean;
  readonly debit?: boolean;
  /** Both calls have one idempotency key. */
  readonly keyed?: boolean;
  /** No wallet is dropped: others show that, and this one has states enough. */
  readonly dropsNone?: boolean;
  /** Comparisons are left out while nothing has changed. */
  readonly leavesOut?: boolean;
  /** Postgres refuses the event of the second call. */
  readonly rejects?: boolean;
  readonly faults: ReadonlySet<Fault>;
  readonly maxFaults: number;
};

export const FAULTS = {
  cut: 'Redis crashes and comes back with an earlier prefix of its writes',
  torn: 'Redis crashes within a transaction, and again later: half of a settlement, or of an admission, comes back',
  failover: 'a replica that was behind becomes master, and the old master lives on',
  oldBack: 'the old master is back',
  swap: 'Redis follows a replica that was behind, and is master again (A→B→A)',
  flushall: 'somebody sends FLUSHALL',
  tamper: 'a bug or somebody changes a wallet',
  writer: 'a writer is suspended after its commit and trims late, or never',
  late: 'a loading or a repair arrives late',
  rewind: 'Postgres goes back to an earlier copy',
  deposed: 'a writer goes on at the deposed primary',
  warned: 'a standby stops following, waits for it are cancelled, and it becomes primary',
} as const;

export type Fault = keyof typeof FAULTS;

/** A scenario, and the checks that are switched off. */
export type Rules = Scenario & {
  readonly without: ReadonlySet<Check>;
  /** Repairs take more out of the wallet than the drift: the model must find that. */
  readonly repairsTooMuch?: boolean;
};

export function rulesOf(scenario: Scenario, ...without: readonly Check[]): Rules {
  return { ...scenario, without: new Set(without) };
}
