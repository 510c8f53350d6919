import type { Buyer } from '../keys/caller.ts';
import type { Damage } from '../ledger/damage-log.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { bulk, bulkHead } from '../platform/trip-encoder.ts';
import type { BatchCall } from './batch-encoder.ts';
import type { CallTerms } from './call-terms.ts';
import type { RateState } from './codes.ts';
import {
  ACCOUNT_SUSPENDED,
  DUPLICATE,
  HOLD_LEFT,
  INSUFFICIENT_BALANCE,
  KEY_NOT_LOADED,
  NO_HOLD,
  NOT_CLOSED,
  OK,
  RATE_LIMITED,
  rateState,
  SETTLED_BESIDE_WALLET,
  SHARD_DAMAGED,
  WALLET_DAMAGED,
  WALLET_NOT_LOADED,
} from './codes.ts';
import type { EncodedKeys } from './encoded-keys.ts';
import type { HoldOwner } from './hold-owners.ts';

/** A call that asks to be admitted. */
export type AdmitRequest = {
  readonly usageId: string;
  readonly buyer: Buyer;
  readonly terms: CallTerms;
  readonly method: string;
  /** Recorded in the usage event; printable ASCII, no tab. */
  readonly path: string;
};

export type Admitted = {
  readonly outcome: 'admitted';
  readonly rate: RateState;
  readonly amountMicros: number;
  readonly freeTier: boolean;
  /** After this call. */
  readonly balanceMicros: number;
  /** Wants to know when the call has ended: `Admission.settle`. */
  readonly owner: HoldOwner;
};

/** The key itself, or its whole account, may not call any more. */
type Barred = 'revoked' | 'suspended';

export type Rejected =
  | { readonly outcome: 'rate_limited' | Barred; readonly rate: RateState }
  | { readonly outcome: 'insufficient_balance'; readonly rate: RateState; readonly balanceMicros: number }
  /** What Redis has of the account's money is not to be understood. An operator has to look; other accounts are not concerned. */
  | { readonly outcome: 'damaged'; readonly rate: RateState }
  /** Redis did not answer, or the state could not be loaded. Nothing is charged, or it is cancelled by id. */
  | { readonly outcome: 'unavailable' };

export type AdmitResult = Admitted | Rejected;

export type TakeResult =
  | { readonly outcome: 'taken' | 'rate_limited' | Barred; readonly rate: RateState }
  | { readonly outcome: 'unavailable' };

/** What an operation needs of the batcher once a reply says 'not loaded', or none came. */
export interface OperationHost {
  readonly keys: RedisKeys;
  readonly encodedKeys: EncodedKeys;
  /** A call is admitted. @returns the owner of its hold */
  admitted(): HoldOwner;
  /** Loads the state of a key (and of a wallet), then enqueues the operation again. */
  reloadAndRetry(operation: TakeOperation | AdmitOperation, what: 'key' | 'wallet'): void;
  /** Makes sure an admission whose reply was lost is undone. */
  cancel(operation: AdmitOperation): void;
  /** Sends a settlement again: it counts once, however often it arrives. */
  retrySettlement(operation: SettleOperation | CancelOperation): void;
  /** The same where Redis has refused it: somebody has to mend its shard first. */
  retryRefused(operation: SettleOperation | CancelOperation, accountId: string): void;
  /** One that was refused is through. */
  mended(accountId: string): void;
  /** An operation met data that no version of this program has written, or none that is known here. */
  foundDamage(what: Damage, accountId: string, usageId: string): void;
  /** A settlement found no hold: somebody else settled the call, or Redis lost it. */
  settledElsewhere(): void;
}

/** One operation of batch.lua: writes its letter, KEYS and ARGV, reads its part of the reply. */
export interface Operation {
  encode(batch: BatchCall, host: OperationHost): void;
  /** Reads this operation's part of the reply. @returns the index after it */
  onReply(reply: readonly number[], at: number, host: OperationHost): number;
  /** No reply. `sent` false: certainly not carried out. */
  onLost(sent: boolean, host: OperationHost): void;
}

/** How often an operation is retried after loading what was missing; more means something unloads as fast as we load. */
const MAX_LOADS = 3;
const UNAVAILABLE = { outcome: 'unavailable' } as const;

const OF_KEY = bulk('0');

function refusalOf(code: number): 'rate_limited' | Barred {
  if (code === RATE_LIMITED) return 'rate_limited';
  return code === ACCOUNT_SUSPENDED ? 'suspended' : 'revoked';
}

export class TakeOperation implements Operation {
  /** An API key with its account, or an address with its limit. */
  readonly keyId: string | null;
  readonly accountId: string;
  readonly addressLimit: number;
  readonly done: (result: TakeResult) => void;
  loads = 0;

  constructor(
    keyId: string | null,
    accountOrAddress: string,
    addressLimit: number,
    done: (result: TakeResult) => void,
  ) {
    this.keyId = keyId;
    this.accountId = accountOrAddress;
    this.addressLimit = addressLimit;
    this.done = done;
  }

  encode(batch: BatchCall, { keys: names }: OperationHost): void {
    if (this.keyId === null) {
      batch.operation('T', bulk(names.ip(this.accountId)), 1, bulk(String(this.addressLimit)), 1, 3);
    } else {
      batch.operation('T', bulk(names.key(names.shardOf(this.accountId), this.keyId)), 1, OF_KEY, 1, 3);
    }
  }

  onReply(reply: readonly number[], at: number, host: OperationHost): number {
    const code = reply[at] as number;
    if (code === KEY_NOT_LOADED) {
      if (++this.loads > MAX_LOADS) this.done(UNAVAILABLE);
      else host.reloadAndRetry(this, 'key');
    } else {
      const rate = rateState(reply[at + 1] as number, reply[at + 2] as number);
      this.done({ outcome: code === OK ? 'taken' : refusalOf(code), rate });
    }
    return at + 3;
  }

  onLost(): void {
    this.done(UNAVAILABLE);
  }
}

/** Who asked for an admission. */
export interface Admittee {
  onAdmission(result: AdmitResult): void;
}

export class AdmitOperation implements Operation {
  readonly request: AdmitRequest;
  readonly #admittee: Admittee;
  loads = 0;

  constructor(request: AdmitRequest, admittee: Admittee) {
    this.request = request;
    this.#admittee = admittee;
  }

  done(result: AdmitResult): void {
    this.#admittee.onAdmission(result);
  }

  encode(batch: BatchCall): void {
    const { usageId, buyer, terms, method, path } = this.request;
    const { keyId, accountId } = buyer;
    const tabs = 4;
    const tail = accountId.length + keyId.length + terms.hold.length + method.length + path.length + tabs;
    batch.terms(terms);
    batch.operation(
      'A',
      buyer.admitKeys,
      3,
      `${bulk(usageId)}${bulkHead(tail)}${accountId}\t${keyId}\t${terms.hold}\t${method}\t${path}\r\n`,
      2,
      5,
    );
  }

  onReply(reply: readonly number[], at: number, host: OperationHost): number {
    const code = reply[at] as number;
    const balanceMicros = reply[at + 3] as number;
    if (code === OK) {
      const freeTier = reply[at + 4] === 1;
      const rate = rateState(reply[at + 1] as number, reply[at + 2] as number);
      const amountMicros = freeTier ? 0 : this.request.terms.priceMicros;
      this.done({ outcome: 'admitted', rate, amountMicros, freeTier, balanceMicros, owner: host.admitted() });
    } else {
      this.#reject(code, reply[at + 1] as number, reply[at + 2] as number, balanceMicros, host);
    }
    return at + 5;
  }

  #reject(code: number, limit: number, tokens: number, balanceMicros: number, host: OperationHost): void {
    if (code === KEY_NOT_LOADED || code === WALLET_NOT_LOADED) {
      if (++this.loads > MAX_LOADS) this.done(UNAVAILABLE);
      else host.reloadAndRetry(this, code === KEY_NOT_LOADED ? 'key' : 'wallet');
      return;
    }
    if (code === DUPLICATE) {
      this.done(UNAVAILABLE);
      return;
    }
    const rate = rateState(limit, tokens);
    if (code === WALLET_DAMAGED || code === SHARD_DAMAGED) {
      const { buyer, usageId } = this.request;
      host.foundDamage(code === WALLET_DAMAGED ? 'wallet' : 'shard', buyer.accountId, usageId);
      this.done(code === WALLET_DAMAGED ? { outcome: 'damaged', rate } : UNAVAILABLE);
      return;
    }
    if (code === INSUFFICIENT_BALANCE) this.done({ outcome: 'insufficient_balance', rate, balanceMicros });
    else this.done({ outcome: refusalOf(code), rate });
  }

  onLost(sent: boolean, host: OperationHost): void {
    if (sent) host.cancel(this);
    this.done(UNAVAILABLE);
  }
}

/** Handles every settlement reply except a plain first-time success. */
function closedAtLast(
  code: number,
  operation: SettleOperation | CancelOperation,
  accountId: string,
  host: OperationHost,
): void {
  const { usageId } = operation;
  if (code === NOT_CLOSED) {
    host.foundDamage('shard', accountId, usageId);
    host.retryRefused(operation, accountId);
    operation.wasRefused = true;
    return;
  }
  if (code === HOLD_LEFT) host.foundDamage('hold', accountId, usageId);
  else if (code === SETTLED_BESIDE_WALLET) host.foundDamage('wallet', accountId, usageId);
  operation.done();
  if (operation.wasRefused) host.mended(accountId);
}

export class SettleOperation implements Operation {
  readonly usageId: string;
  readonly buyer: Buyer;
  readonly refund: boolean;
  readonly settlement: string;
  readonly done: () => void;
  wasRefused = false;
  /** Sent before without a reply: then a hold that is gone is probably the work of that first time. */
  #isRetry = false;

  constructor(usageId: string, buyer: Buyer, refund: boolean, settlement: string, done: () => void) {
    this.usageId = usageId;
    this.buyer = buyer;
    this.refund = refund;
    this.settlement = settlement;
    this.done = done;
  }

  encode(batch: BatchCall, { encodedKeys }: OperationHost): void {
    const args = bulk(this.usageId) + bulk(this.settlement);
    if (this.refund) batch.operation('R', encodedKeys.refund(this.buyer.accountId), 3, args, 2, 1);
    else batch.operation('S', this.buyer.settleKeys, 2, args, 2, 1);
  }

  onReply(reply: readonly number[], at: number, host: OperationHost): number {
    const code = reply[at] as number;
    if (code === NO_HOLD && !this.#isRetry) host.settledElsewhere();
    if (code < SETTLED_BESIDE_WALLET && !this.wasRefused) this.done();
    else closedAtLast(code, this, this.buyer.accountId, host);
    return at + 1;
  }

  onLost(sent: boolean, host: OperationHost): void {
    this.#isRetry ||= sent;
    host.retrySettlement(this);
  }
}

export class CancelOperation implements Operation {
  readonly usageId: string;
  readonly accountId: string;
  readonly settlement: string;
  readonly done: () => void;
  wasRefused = false;

  constructor(usageId: string, accountId: string, settlement: string, done: () => void) {
    this.usageId = usageId;
    this.accountId = accountId;
    this.settlement = settlement;
    this.done = done;
  }

  encode(batch: BatchCall, { encodedKeys }: OperationHost): void {
    batch.operation('C', encodedKeys.refund(this.accountId), 3, bulk(this.usageId) + bulk(this.settlement), 2, 1);
  }

  onReply(reply: readonly number[], at: number, host: OperationHost): number {
    const code = reply[at] as number;
    if (code < SETTLED_BESIDE_WALLET && !this.wasRefused) this.done();
    else closedAtLast(code, this, this.accountId, host);
    return at + 1;
  }

  onLost(_sent: boolean, host: OperationHost): void {
    host.retrySettlement(this);
  }
}

/** Renews the lease of an instance in one shard. */
export class LeaseOperation implements Operation {
  readonly shard: number;
  readonly instance: string;

  constructor(shard: number, instance: string) {
    this.shard = shard;
    this.instance = instance;
  }

  encode(batch: BatchCall, { keys: names }: OperationHost): void {
    const [lease, open] = [names.lease[this.shard] as string, names.open[this.shard] as string];
    batch.operation('L', bulk(lease) + bulk(open), 2, bulk(this.instance), 1, 0);
  }

  onReply(_reply: readonly number[], at: number): number {
    return at;
  }

  onLost(): void {}
}
