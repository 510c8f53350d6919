import { assert } from '../assert.ts';
import type { Damage } from '../ledger/damage-log.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { bulk, bulkHead } from '../platform/trip-encoder.ts';
import type { BatchEncoder } from './batch-encoder.ts';
import { type Buyer, type Chain, chainOf } from './buyer.ts';
import type { CallTerms } from './call-terms.ts';
import type { Claim, EndedClaim } from './claims.ts';
import {
  type CallRefusal,
  type ClaimRefusal,
  HOLD_LEFT,
  type KeyRefusal,
  NO_HOLD,
  NOT_CLOSED,
  OK,
  type RateState,
  REFUSALS,
  rateState,
  SETTLED,
  SETTLED_BESIDE_WALLET,
} from './codes.ts';
import type { EncodedKeys } from './encoded-keys.ts';
import type { HoldOwner } from './hold-owners.ts';

/** What admission must know about a call to decide it. */
export type AdmitRequest = {
  readonly usageId: string;
  readonly buyer: Buyer;
  readonly terms: CallTerms;
  readonly method: string;
  /** Recorded in the usage event; printable ASCII, no tab. */
  readonly path: string;
  /** The call's tag, in the form that `isTag` (platform/call-tag.ts) allows; recorded with the call. Null: the caller gave none. */
  readonly tag: string | null;
  /** Null: the call has no idempotency key. */
  readonly claim: Claim | null;
};

/** A budget that does not cover a call. Of several, the one whose next period begins last. */
export type SpentBudget = {
  /** The key that has the budget: the calling key, or one above it. */
  readonly keyId: string;
  readonly leftMicros: number;
  /** When the next period begins, by Redis's clock. Null: never. */
  readonly resetsAtMs: number | null;
};

export type Admitted = {
  readonly outcome: 'admitted';
  readonly rate: RateState;
  /** What the hold took: 0 for a free call. */
  readonly amountMicros: number;
  /**
   * The most that the service of a call priced by use may charge; also set for a free call, which costs nothing. Null: a fixed
   * price.
   */
  readonly authorizedMicros: number | null;
  readonly freeTier: boolean;
  /** How many free calls of the listing the account has left. Null: the listing has none, or the call costs nothing anyway. */
  readonly freeLeft: number | null;
  /** What the caller can spend after this call: the wallet's balance, or what is left in a budget, if that is less. */
  readonly balanceMicros: number;
  /** Owner of the call's hold, to be passed to `Admission.settle`. */
  readonly owner: HoldOwner;
};

export type Rejected =
  | {
      readonly outcome: KeyRefusal | CallRefusal;
      readonly rate: RateState;
      /** The balance that was compared with the price. It means nothing unless the outcome is 'insufficient_balance'. */
      readonly balanceMicros: number;
    }
  | { readonly outcome: 'budget_exceeded'; readonly rate: RateState; readonly budget: SpentBudget }
  | { readonly outcome: Exclude<ClaimRefusal, 'charged_before'>; readonly rate: RateState }
  | { readonly outcome: 'charged_before'; readonly rate: RateState }
  /**
   * Nobody could decide the call: Redis is away, too busy or has a damaged shard, or Postgres could not fill it. Nothing is
   * charged: an admission without a reply is cancelled by its id.
   */
  | { readonly outcome: 'unavailable' };

export type AdmitResult = Admitted | Rejected;

export type TakeResult =
  | { readonly outcome: 'taken' | KeyRefusal; readonly rate: RateState }
  | { readonly outcome: 'unavailable' };

/** What commands need from `Admission` while they are encoded, and when their reply arrives or is lost. */
export interface CommandHost {
  readonly keys: RedisKeys;
  readonly encodedKeys: EncodedKeys;
  /** Counts an admitted call as open. @returns the owner of its hold */
  admitted(): HoldOwner;
  /** Loads the missing state of the key or the wallet, then enqueues the command again. */
  reloadAndRetry(command: TakeCommand | AdmitCommand, what: 'key' | 'wallet'): void;
  /** Sends a cancellation for an admission whose reply was lost: Redis may have carried the admission out. */
  cancel(command: AdmitCommand): void;
  /** Sends an unanswered settlement again. It counts once, however often it arrives at Redis. */
  retrySettlement(command: SettleCommand | CancelCommand): void;
  /** Later sends a settlement again that Redis has refused, because the shard is damaged and an operator has to repair it. */
  retryRefused(command: SettleCommand | CancelCommand, accountId: string): void;
  /** Redis has accepted a settlement that it had refused before: the shard of this account works again. */
  mended(accountId: string): void;
  /** A command met data that this version cannot read: damaged, or (holds and keys) written by another version. */
  foundDamage(what: Damage, accountId: string, id: string): void;
  /** The script has replied a code that the gateway does not know: somebody forgot a row in codes.ts. */
  foundUnknownCode(code: number): void;
  /** A settlement found no hold: the sweep had ended the call, or Redis lost it. */
  settledElsewhere(): void;
}

/**
 * One command of batch.lua: writes its letter, KEYS and ARGV, and reads its part of the reply.
 *
 * Tested by test/admission/batch.test.ts and damage.test.ts.
 */
export interface Command {
  encode(batch: BatchEncoder, host: CommandHost): void;
  /** Reads this command's part of the reply. @returns the index after it */
  onReply(reply: readonly number[], at: number, host: CommandHost): number;
  /** Called when the command gets no reply. With `sent` false, Redis has certainly not carried it out. */
  onLost(sent: boolean, host: CommandHost): void;
}

/**
 * How often a command is sent again after its key or wallet was loaded from Postgres; then it ends as 'unavailable'. If three
 * loads do not suffice, something deletes the state from Redis as fast as the gateway loads it.
 */
const MAX_LOADS = 3;
const UNAVAILABLE = { outcome: 'unavailable' } as const;

/**
 * The token buckets that a request with a key may draw on. `own`: that of the key, for calls and for everything that does not name
 * another. `reads`: one for each key, as large as its own. `person`: for what pages do whose reader is signed in with the key; one
 * for all its sessions (PERSON_LIMIT), so that more sessions bring no more tokens. `control`: one for each account (CONTROL_LIMIT). If a
 * program spends the tokens of its key without pause, the others stay full, so that its owner can see what happens, and end it.
 */
export type KeyBucket = 'own' | 'reads' | 'person' | 'control';

/** Requests per minute by which an account may revoke and rotate its keys. */
export const CONTROL_LIMIT = 30;

/**
 * Requests per minute by which people use pages with a key, however few its programs may send: a page takes about six. As many as the
 * two buckets of an ordinary key have together.
 */
export const PERSON_LIMIT = 120;

const LIMIT_OF_KEY = bulk('0');
const LIMIT_OF_PERSON = bulk(String(PERSON_LIMIT));
const LIMIT_OF_CONTROL = bulk(String(CONTROL_LIMIT));
const OWN_BUCKET = bulk('');

export class TakeCommand implements Command {
  readonly keyId: string | null;
  /** The account of the key; without a key (`keyId` null), the address whose bucket is used. */
  readonly subject: string;
  /** Requests per minute of the address. 0 for a key: its limit is in Redis. */
  readonly addressLimit: number;
  readonly done: (result: TakeResult) => void;
  readonly bucket: KeyBucket;
  /** Null: not a child key. */
  readonly chain: Chain | null;
  loads = 0;

  /** @param ancestors  the keys above the key, root first */
  constructor(
    keyId: string | null,
    subject: string,
    addressLimit: number,
    done: (result: TakeResult) => void,
    bucket: KeyBucket = 'own',
    ancestors: readonly string[] = [],
  ) {
    this.keyId = keyId;
    this.subject = subject;
    this.addressLimit = addressLimit;
    this.done = done;
    this.bucket = bucket;
    this.chain = keyId === null ? null : chainOf(keyId, ancestors);
  }

  encode(batch: BatchEncoder, { keys: names }: CommandHost): void {
    if (this.keyId === null) {
      batch.command('T', bulk(names.ip(this.subject)), 1, bulk(String(this.addressLimit)), 1, 3);
      return;
    }
    const shard = names.shardOf(this.subject);
    if (this.chain !== null) {
      this.#encodeChild(batch, names, shard, this.keyId, this.chain);
      return;
    }
    const own = bulk(names.key(shard, this.keyId));
    switch (this.bucket) {
      case 'own':
        batch.command('T', own, 1, LIMIT_OF_KEY, 1, 3);
        break;
      case 'reads':
        batch.command('B', own + bulk(names.reads(shard, this.keyId)), 2, LIMIT_OF_KEY, 1, 3);
        break;
      case 'person':
        batch.command('B', own + bulk(names.person(shard, this.keyId)), 2, LIMIT_OF_PERSON, 1, 3);
        break;
      case 'control':
        batch.command('B', own + bulk(names.control(shard, this.subject)), 2, LIMIT_OF_CONTROL, 1, 3);
    }
  }

  /** A child key has its own `control` bucket, so that it cannot prevent its account from controlling its keys. */
  #encodeChild(batch: BatchEncoder, names: RedisKeys, shard: number, keyId: string, { rootId, arg }: Chain): void {
    const root = bulk(names.key(shard, rootId));
    switch (this.bucket) {
      case 'own':
        batch.command('E', root + bulk(names.wallet(shard, this.subject)), 2, arg + OWN_BUCKET, 2, 3);
        break;
      case 'reads':
        batch.command('E', root + bulk(names.reads(shard, keyId)), 2, arg + LIMIT_OF_KEY, 2, 3);
        break;
      case 'person':
        batch.command('E', root + bulk(names.person(shard, keyId)), 2, arg + LIMIT_OF_PERSON, 2, 3);
        break;
      case 'control':
        batch.command('E', root + bulk(names.control(shard, keyId)), 2, arg + LIMIT_OF_CONTROL, 2, 3);
    }
  }

  onReply(reply: readonly number[], at: number, host: CommandHost): number {
    const code = reply[at] as number;
    const rate = rateState(reply[at + 1] as number, reply[at + 2] as number);
    if (code === OK) this.done({ outcome: 'taken', rate });
    else this.#refuse(code, rate, host);
    return at + 3;
  }

  #refuse(code: number, rate: RateState, host: CommandHost): void {
    const refusal = REFUSALS[code];
    switch (refusal?.does) {
      case 'load':
        if (++this.loads > MAX_LOADS) this.done(UNAVAILABLE);
        else host.reloadAndRetry(this, refusal.what);
        return;
      case 'refuse':
        this.done({ outcome: refusal.outcome, rate });
        return;
      case 'fail':
        if (refusal.damage !== undefined) host.foundDamage(refusal.damage, this.subject, this.keyId ?? '');
        this.done(UNAVAILABLE);
        return;
      // The bucket of a child key is in the wallet. All other refusals that exist only for calls count as unknown codes here.
      case 'refuse_call':
        if (refusal.damage === undefined || this.chain === null) host.foundUnknownCode(code);
        else host.foundDamage(refusal.damage, this.subject, this.keyId ?? '');
        this.done(UNAVAILABLE);
        return;
      default:
        host.foundUnknownCode(code);
        this.done(UNAVAILABLE);
    }
  }

  onLost(): void {
    this.done(UNAVAILABLE);
  }
}

/** Receives the decision about an admission. The call itself (proxy/stages/checked-call.ts) implements it. */
export interface AdmissionListener {
  onAdmission(result: AdmitResult): void;
}

/** How many numbers batch.lua replies to the admission of a child key. */
const CHILD_REPLIES = 9;

export class AdmitCommand implements Command {
  readonly request: AdmitRequest;
  readonly #listener: AdmissionListener;
  loads = 0;

  constructor(request: AdmitRequest, listener: AdmissionListener) {
    this.request = request;
    this.#listener = listener;
  }

  done(result: AdmitResult): void {
    this.#listener.onAdmission(result);
  }

  encode(batch: BatchEncoder, { encodedKeys }: CommandHost): void {
    const { usageId, buyer, terms, method, path, tag, claim } = this.request;
    const { keyId, accountId, chain } = buyer;
    const tabs = 4;
    const { hold } = terms;
    const tagged = tag === null ? terms.holdEnd : `${terms.holdEnd}\ttag=${tag}`;
    const holdEnd = claim === null ? tagged : `${tagged}\tclaim=${claim.name}`;
    const tail = accountId.length + keyId.length + hold.length + method.length + path.length + holdEnd.length + tabs;
    const args = `${bulk(usageId)}${bulkHead(tail)}${accountId}\t${keyId}\t${hold}\t${method}\t${path}${holdEnd}\r\n`;
    batch.terms(terms);
    if (claim !== null) {
      const keys = encodedKeys.claims(accountId) + buyer.admitKeys;
      const all = bulk(claim.name) + bulk(claim.target) + args;
      if (chain === null) batch.command('I', keys, 5, all, 4, 5);
      else batch.command('J', keys, 5, all + chain.arg + terms.leastArg, 6, CHILD_REPLIES);
    } else if (chain !== null) {
      batch.command('D', buyer.admitKeys, 3, args + chain.arg + terms.leastArg, 4, CHILD_REPLIES);
    } else batch.command('A', buyer.admitKeys, 3, args, 2, 5);
  }

  onReply(reply: readonly number[], at: number, host: CommandHost): number {
    const code = reply[at] as number;
    const rate = rateState(reply[at + 1] as number, reply[at + 2] as number);
    const balanceMicros = reply[at + 3] as number;
    const { maxPriceMicros, heldMicros, hasFreeCalls } = this.request.terms;
    const { chain } = this.request.buyer;
    if (code === OK) {
      const free = reply[at + 4] as number;
      const freeTier = free > 0;
      const freeLeft = hasFreeCalls ? Math.max(0, free - 1) : null;
      // Only budgets lower what a hold takes.
      const heldOfAll = freeTier ? 0 : heldMicros;
      const amountMicros = chain === null ? heldOfAll : (reply[at + 5] as number);
      const authorizedMicros = maxPriceMicros === null ? null : freeTier ? heldMicros : amountMicros;
      const owner = host.admitted();
      this.done({
        outcome: 'admitted',
        rate,
        amountMicros,
        authorizedMicros,
        freeTier,
        freeLeft,
        balanceMicros,
        owner,
      });
    } else {
      this.#refuse(code, rate, balanceMicros, chain === null ? null : spentBudget(chain, reply, at + 6), host);
    }
    return at + (chain === null ? 5 : CHILD_REPLIES);
  }

  #refuse(code: number, rate: RateState, balanceMicros: number, budget: SpentBudget | null, host: CommandHost): void {
    const refusal = REFUSALS[code];
    if (refusal?.does === 'refuse_for_budget' && budget !== null) {
      this.done({ outcome: 'budget_exceeded', rate, budget });
      return;
    }
    if (refusal?.does === 'refuse_for_claim' && this.request.claim !== null) {
      this.done({ outcome: refusal.outcome, rate });
      return;
    }
    if (refusal === undefined || refusal.does === 'refuse_for_budget' || refusal.does === 'refuse_for_claim') {
      // Whatever the code means, the call is not admitted here. If the script has opened a hold, the cancellation ends it.
      host.foundUnknownCode(code);
      host.cancel(this);
      this.done(UNAVAILABLE);
      return;
    }
    if (refusal.does === 'load') {
      if (++this.loads > MAX_LOADS) this.done(UNAVAILABLE);
      else host.reloadAndRetry(this, refusal.what);
      return;
    }
    const { damage } = refusal;
    const { buyer, usageId } = this.request;
    if (damage !== undefined) host.foundDamage(damage, buyer.accountId, damage === 'key' ? buyer.keyId : usageId);
    this.done(refusal.does === 'fail' ? UNAVAILABLE : { outcome: refusal.outcome, rate, balanceMicros });
  }

  onLost(sent: boolean, host: CommandHost): void {
    if (sent) host.cancel(this);
    this.done(UNAVAILABLE);
  }
}

/** Reads the end of the reply to a child key's admission. @returns null if no budget was exceeded */
function spentBudget({ keyIds }: Chain, reply: readonly number[], at: number): SpentBudget | null {
  const keyId = keyIds[(reply[at] as number) - 1];
  if (keyId === undefined) return null;
  return { keyId, leftMicros: reply[at + 1] as number, resetsAtMs: reply[at + 2] || null };
}

/**
 * Handles the unusual replies to a settlement or a cancellation: damage, or any reply to a command that Redis had refused before.
 * The usual replies, 'settled now' and 'no hold', do not come here. After a code that nobody knows, the command is not sent again;
 * if its hold is still there, the sweep ends it once its owner's lease has run out.
 */
function closedAtLast(
  code: number,
  command: SettleCommand | CancelCommand,
  accountId: string,
  host: CommandHost,
): void {
  const { usageId } = command;
  if (code === NOT_CLOSED) {
    host.foundDamage('shard', accountId, usageId);
    host.retryRefused(command, accountId);
    command.wasRefused = true;
    return;
  }
  if (code === HOLD_LEFT) host.foundDamage('hold', accountId, usageId);
  else if (code === SETTLED_BESIDE_WALLET) host.foundDamage('wallet', accountId, usageId);
  else if (code !== SETTLED && code !== NO_HOLD) host.foundUnknownCode(code);
  command.done();
  if (command.wasRefused) host.mended(accountId);
}

const isAmount = (micros: number): boolean => Number.isSafeInteger(micros) && micros >= 0;

/** The command that follows the one which ends a call with a claim. @param charged  null: the claim is free again */
function endClaim(
  batch: BatchEncoder,
  keys: EncodedKeys,
  accountId: string,
  usageId: string,
  name: string,
  charged: EndedClaim['charged'] | null,
): void {
  const end =
    charged === null
      ? ['', '', '']
      : [charged.bodyDigest ?? '-', charged.keeps ? 'k' : 'n', String(charged.amountMicros)];
  batch.command('G', keys.claims(accountId), 2, [usageId, name, ...end].map(bulk).join(''), 5, 0);
}

export class SettleCommand implements Command {
  readonly usageId: string;
  readonly buyer: Buyer;
  readonly refund: boolean;
  readonly settlement: string;
  readonly done: () => void;
  /** What a call priced by use is charged, at most its hold. Null: the whole hold, or nothing if it is refunded. */
  readonly capturedMicros: number | null;
  /** Null: the call has no idempotency key. */
  readonly claim: EndedClaim | null;
  wasRefused = false;
  /** True when this command was sent before and got no reply. If the hold is gone, that attempt has probably settled the call. */
  #isRetry = false;

  constructor(
    usageId: string,
    buyer: Buyer,
    refund: boolean,
    settlement: string,
    done: () => void,
    capturedMicros: number | null = null,
    claim: EndedClaim | null = null,
  ) {
    assert(
      capturedMicros === null || (!refund && isAmount(capturedMicros)),
      'what is captured is an amount in micro-USD',
    );
    this.usageId = usageId;
    this.buyer = buyer;
    this.refund = refund;
    this.settlement = settlement;
    this.done = done;
    this.capturedMicros = capturedMicros;
    this.claim = claim;
  }

  encode(batch: BatchEncoder, { encodedKeys }: CommandHost): void {
    const args = bulk(this.usageId) + bulk(this.settlement);
    if (this.refund) batch.command('R', encodedKeys.refundOf(this.buyer), 3, args, 2, 1);
    else if (this.capturedMicros === null) batch.command('S', this.buyer.settleKeys, 2, args, 2, 1);
    else batch.command('K', encodedKeys.refundOf(this.buyer), 3, args + bulk(String(this.capturedMicros)), 3, 1);
    if (this.claim !== null) {
      const charged = this.refund ? null : this.claim.charged;
      endClaim(batch, encodedKeys, this.buyer.accountId, this.usageId, this.claim.name, charged);
    }
  }

  onReply(reply: readonly number[], at: number, host: CommandHost): number {
    const code = reply[at] as number;
    if (code === NO_HOLD && !this.#isRetry) host.settledElsewhere();
    if (code < SETTLED_BESIDE_WALLET && !this.wasRefused) this.done();
    else closedAtLast(code, this, this.buyer.accountId, host);
    return at + 1;
  }

  onLost(sent: boolean, host: CommandHost): void {
    this.#isRetry ||= sent;
    host.retrySettlement(this);
  }
}

export class CancelCommand implements Command {
  readonly usageId: string;
  readonly accountId: string;
  readonly settlement: string;
  readonly done: () => void;
  readonly #claim: Claim | null;
  wasRefused = false;

  constructor(usageId: string, accountId: string, settlement: string, done: () => void, claim: Claim | null = null) {
    this.usageId = usageId;
    this.accountId = accountId;
    this.settlement = settlement;
    this.done = done;
    this.#claim = claim;
  }

  encode(batch: BatchEncoder, { encodedKeys }: CommandHost): void {
    batch.command('C', encodedKeys.refund(this.accountId), 3, bulk(this.usageId) + bulk(this.settlement), 2, 1);
    if (this.#claim !== null) endClaim(batch, encodedKeys, this.accountId, this.usageId, this.#claim.name, null);
  }

  onReply(reply: readonly number[], at: number, host: CommandHost): number {
    const code = reply[at] as number;
    if (code < SETTLED_BESIDE_WALLET && !this.wasRefused) this.done();
    else closedAtLast(code, this, this.accountId, host);
    return at + 1;
  }

  onLost(_sent: boolean, host: CommandHost): void {
    host.retrySettlement(this);
  }
}

/** Renews an instance's lease in one shard, and the tombstone that keeps Redis from deleting the shard's empty hash of holds. */
export class LeaseCommand implements Command {
  readonly shard: number;
  readonly instance: string;

  constructor(shard: number, instance: string) {
    this.shard = shard;
    this.instance = instance;
  }

  encode(batch: BatchEncoder, { keys: names }: CommandHost): void {
    const [lease, open] = [names.lease[this.shard] as string, names.open[this.shard] as string];
    batch.command('L', bulk(lease) + bulk(open), 2, bulk(this.instance), 1, 0);
  }

  onReply(_reply: readonly number[], at: number): number {
    return at;
  }

  onLost(): void {}
}
