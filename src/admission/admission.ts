import { type Damage, DamageLog } from '../ledger/damage-log.ts';
import { SparseWarning } from '../observability/sparse-warning.ts';
import { RedisNotSent } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import type { TripConnection } from '../platform/replicated-connection.ts';
import { BatchEncoder } from './batch-encoder.ts';
import type { Buyer } from './buyer.ts';
import {
  type AdmissionListener,
  AdmitCommand,
  type AdmitRequest,
  CancelCommand,
  type Command,
  type CommandHost,
  LeaseCommand,
  SettleCommand,
  TakeCommand,
  type TakeResult,
} from './commands.ts';
import { EncodedKeys } from './encoded-keys.ts';
import { type HoldOwner, HoldOwners } from './hold-owners.ts';
import { LeaseClock } from './lease-clock.ts';
import { RefusedSettlements } from './refused-settlements.ts';
import { readReply } from './reply.ts';
import { SettlementRetries } from './settlement-retries.ts';
import { TripHealth } from './trip-health.ts';

/**
 * Maximum number of commands in one trip; a longer batch is split into several trips. Redis runs one script at a time, so a long
 * trip would make all other clients of Redis wait.
 */
const MAX_BATCH = 128;
/**
 * Maximum number of trips under way. At the bound, commands wait until a trip ends, and then share the next trip. With more trips
 * at once, each would carry fewer commands, and a small batch costs Redis more per command.
 */
const MAX_TRIPS = 16;
/**
 * Maximum number of commands that wait for a trip; at the bound new calls are refused. No command waits longer than the command
 * timeout: when a trip is lost, the waiting commands end as lost, too.
 *
 * Must exceed what one event-loop turn can enqueue: for each caller, the settlement of one call and the admission of the next.
 * Otherwise refused callers retry within the same turn, and keep it from ending; but nothing is sent before it ends. With a bound
 * of 8 192 and as many callers, turns took a second, and four out of five calls were refused: 5 200 calls/s were served, against
 * 15 300 with this value.
 */
const MAX_PENDING = 32_768;
/**
 * Interval at which the gateway renews its leases. INSTANCE_LEASE_SECONDS (15 by default, 10 at least) leaves time for several
 * renewals, so that one may be lost.
 */
export const LEASE_RENEW_MS = 3_000;
/**
 * Interval at which a timer looks at the settlements of charged calls that wait. They wait for an admission or a refund whose
 * trip they can share, because nobody waits for a charge to be settled; with few calls, each settlement used to make a trip of
 * its own. No settlement waits longer than two intervals. If the gateway is killed before it sends a settlement, the sweep
 * finds the hold and refunds the call. A refund never waits: its caller may need the money to try again.
 */
const SETTLE_EVERY_MS = 10;
/** With this many commands pending, settlements no longer wait to share a trip: the batch is large enough to be worth its own. */
const ENOUGH_SETTLEMENTS = 32;
/**
 * Maximum number of settlements and cancellations that Redis has not confirmed; at the bound no new call is admitted until Redis
 * has caught up. The value is that of MAX_PENDING: as many commands may wait for a trip. Settlements that Redis has refused
 * because their shard is damaged do not count: they wait for an operator, and must not stop the calls of other shards.
 */
const MAX_UNSETTLED = MAX_PENDING;

/** Loads a key's state or a wallet from Postgres into Redis when the script says 'not loaded'. Rejects when Postgres is away. */
export interface StateLoader {
  loadKey(keyId: string, accountId: string): Promise<void>;
  loadWallet(accountId: string): Promise<void>;
}

export type AdmissionOptions = {
  /** Runs batch.lua. */
  readonly batches: Pick<TripConnection, 'ready' | 'onReady' | 'send'>;
  readonly keys: RedisKeys;
  /** The shards whose accounts are admitted here. Default: all. */
  readonly shards?: readonly number[];
  /** Identifies this gateway process; new at each start. */
  readonly instance: string;
  readonly loader: StateLoader;
  /** The settlement of every call that is cancelled because its admission had no reply (encoded by ledger/usage-event.ts). */
  readonly cancelSettlement: string;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * Collects commands (admissions, settlements, tokens to take) and sends them to batch.lua in batches, one batch a trip. Admissions,
 * tokens and refunds are sent at the end of their event-loop turn. Settlements of charged calls are sent with the next of these,
 * or after 20 ms at most.
 *
 *   admit() take() settle()           flush (end of the turn)              reply
 *        │                                    │                              │
 *        └──► pending: commands ─────► one EVALSHA ─────────► command.onReply(reply, at)
 *                  ▲                          │ lost
 *                  └── settlements, again ◄───┴──► admissions: 'unavailable', and cancelled by id
 *
 * Tested by test/admission/admission.test.ts, batch.test.ts, damage.test.ts and model.test.ts.
 */
export class Admission implements CommandHost {
  readonly keys: RedisKeys;
  readonly encodedKeys: EncodedKeys;
  readonly #batch = new BatchEncoder();
  readonly #batches: AdmissionOptions['batches'];
  readonly #shards: readonly number[];
  readonly #loader: StateLoader;
  readonly #cancelSettlement: string;
  #pending: Command[] = [];
  #scheduled = false;
  /** True when the last flush left commands in `#pending`, because MAX_TRIPS were under way. The end of a trip flushes again. */
  #awaitsTrip = false;
  #settleTimer: NodeJS.Timeout | null = null;
  /** True when a flush came after `#settleTimer` was set. It sends the older settlements, at once or when a trip ends. */
  #flushedSince = false;
  #trips = 0;
  /** Settlements and cancellations that have no reply yet; drain() waits for them. */
  #unsettled = 0;
  /** Number of commands whose key or wallet is being loaded from Postgres. */
  #loading = 0;
  #settledElsewhere = 0;
  readonly #owners: HoldOwners;
  /** Owner of the holds that were opened by the trip whose reply is being read. */
  #ownerOfTrip: HoldOwner;
  readonly #loadFailures: SparseWarning;
  readonly #health: TripHealth;
  readonly #retries: SettlementRetries;
  readonly #refused: RefusedSettlements;
  readonly #damage: DamageLog;
  #leaseTimer: NodeJS.Timeout | null = null;
  readonly #lease = new LeaseClock(LEASE_RENEW_MS);
  #whenDrained: (() => void)[] = [];

  constructor(options: AdmissionOptions) {
    this.keys = options.keys;
    this.encodedKeys = new EncodedKeys(options.keys);
    this.#owners = new HoldOwners(options.instance, this.#settled);
    this.#ownerOfTrip = this.#owners.present;
    this.#batches = options.batches;
    this.#shards = options.shards ?? Array.from(options.keys.lease.keys());
    this.#loader = options.loader;
    this.#cancelSettlement = options.cancelSettlement;
    this.#loadFailures = new SparseWarning(options.log);
    this.#health = new TripHealth(options.log);
    const port = {
      connected: () => this.#batches.ready,
      send: (command: Command) => this.#enqueue(command),
    };
    this.#retries = new SettlementRetries({ ...port, suspect: () => this.#health.suspect, probe: MAX_BATCH });
    this.#refused = new RefusedSettlements(port);
    this.#damage = new DamageLog(options.log);
  }

  /** Starts a timer that renews the leases even when there are no calls to renew them with. */
  start(): void {
    this.#leaseTimer = setInterval(() => this.#scheduleFlush(), LEASE_RENEW_MS);
    this.#leaseTimer.unref();
    // Redis may have been away for longer than a lease: renew at once, so that the sweep sees that this gateway lives.
    this.#batches.onReady(() => {
      this.#owners.reconnected();
      this.#lease.expire();
      // The pause before settlements are sent again grew up to a second while Redis was away.
      this.#retries.hurry();
      this.#scheduleFlush();
    });
    this.#scheduleFlush();
  }

  /** Whether Redis carries out this gateway's commands. When there are no calls, the renewals of the leases show it. */
  get answering(): boolean {
    return this.#batches.ready && this.#health.answeredWithin(2 * LEASE_RENEW_MS);
  }

  /** Prepares what the calls of this key need. Computed once per key: proxy/exchange.ts keeps the result with the key. */
  buyer(keyId: string, accountId: string): Buyer {
    return this.encodedKeys.buyer(keyId, accountId);
  }

  /**
   * Decides a call: checks the key, takes a token, takes the price or a free slot, and opens the hold. Money is taken only if the
   * call is admitted. A usage id is charged at most once, however often it is sent.
   */
  admit(request: AdmitRequest, listener: AdmissionListener): void {
    if (!this.#available() || (this.#refused.commands > 0 && this.#isRefused(request.buyer))) {
      listener.onAdmission({ outcome: 'unavailable' });
    } else this.#enqueue(new AdmitCommand(request, listener));
  }

  /** Takes one token from a key's bucket, for a request that is not a call. */
  takeForKey(keyId: string, accountId: string, done: (result: TakeResult) => void): void {
    if (!this.#available()) done({ outcome: 'unavailable' });
    else this.#enqueue(new TakeCommand(keyId, accountId, 0, done));
  }

  /** Takes one token from the bucket of an address. */
  takeForAddress(address: string, limitPerMinute: number, done: (result: TakeResult) => void): void {
    if (!this.#available()) done({ outcome: 'unavailable' });
    else this.#enqueue(new TakeCommand(null, address, limitPerMinute, done));
  }

  /**
   * Settles an admitted call: ends its hold, appends one usage event, and gives the money back when `refund` is true. The
   * settlement is sent again until Redis has confirmed it.
   *
   * @param owner the owner of the hold, as the result of `admit` named it
   */
  settle(usageId: string, buyer: Buyer, refund: boolean, settlement: string, owner: HoldOwner): void {
    this.#unsettled++;
    this.#pending.push(new SettleCommand(usageId, buyer, refund, settlement, owner.ended));
    if (this.#scheduled) return;
    if (refund || this.#pending.length >= ENOUGH_SETTLEMENTS) this.#scheduleFlush();
    else if (this.#settleTimer === null) this.#watchSettlements();
  }

  #watchSettlements(): void {
    this.#flushedSince = false;
    this.#settleTimer = setTimeout(this.#onSettleTimer, SETTLE_EVERY_MS);
  }

  readonly #onSettleTimer = (): void => {
    this.#settleTimer = null;
    if (this.#pending.length === 0) return;
    // That flush sends the settlements that waited then, at once or when a trip ends. Those that came later get an interval of
    // their own.
    if (this.#flushedSince) this.#watchSettlements();
    else this.#scheduleFlush();
  };

  /** Number of settlements and cancellations that Redis has not confirmed yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /**
   * Resolves with 0 once every settlement is confirmed, or after `timeoutMs` with the number of unconfirmed settlements. Waits
   * for admissions under way, too: a call that is admitted after its caller was cut off still has to be settled.
   */
  async drain(timeoutMs: number): Promise<number> {
    if (!this.#isIdle()) {
      this.#scheduleFlush();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#whenDrained.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    if (this.#leaseTimer !== null) clearInterval(this.#leaseTimer);
    this.#retries.stop();
    this.#refused.stop();
    return this.#unsettled;
  }

  reloadAndRetry(command: TakeCommand | AdmitCommand, what: 'key' | 'wallet'): void {
    const isCall = command instanceof AdmitCommand;
    const { keyId, accountId } = isCall ? command.request.buyer : { keyId: command.keyId, accountId: command.subject };
    const loads: Promise<void>[] = [];
    if (what === 'key') loads.push(this.#loader.loadKey(keyId as string, accountId));
    // Redis says only what it missed first. If a call's key is missing, most likely its wallet is, too: both are loaded at once.
    if (isCall || what === 'wallet') loads.push(this.#loader.loadWallet(accountId));
    const loaded = Promise.all(loads);
    this.#loading++;
    loaded.then(
      () => {
        this.#loading--;
        this.#enqueue(command);
      },
      (error: unknown) => {
        this.#loading--;
        this.#loadFailures.warn({ err: error, account_id: accountId }, `cannot load the ${what} into redis`);
        command.done({ outcome: 'unavailable' });
        this.#checkDrained();
      },
    );
  }

  cancel(command: AdmitCommand): void {
    const { usageId, buyer } = command.request;
    this.#unsettled++;
    this.retrySettlement(new CancelCommand(usageId, buyer.accountId, this.#cancelSettlement, this.admitted().ended));
  }

  admitted(): HoldOwner {
    const owner = this.#ownerOfTrip;
    owner.openCalls++;
    return owner;
  }

  retrySettlement(command: SettleCommand | CancelCommand): void {
    this.#retries.add(command);
  }

  retryRefused(command: SettleCommand | CancelCommand, accountId: string): void {
    this.#refused.add(command, this.keys.shardOf(accountId), !command.wasRefused);
  }

  mended(accountId: string): void {
    const shard = this.keys.shardOf(accountId);
    this.#refused.accepted(shard);
    this.#damage.shardWorks(shard);
  }

  foundDamage(what: Damage, accountId: string, usageId: string): void {
    this.#damage.found(what, accountId, usageId, this.keys.shardOf(accountId));
  }

  /** Number of commands that met damaged data, for each kind of data (wallet, hold, shard). */
  get damage(): ReadonlyMap<Damage, number> {
    return this.#damage.counts;
  }

  settledElsewhere(): void {
    this.#settledElsewhere++;
  }

  /** Number of settlements that found no hold: the sweep had ended the call, or Redis lost the hold. They charged nothing. */
  get settlementsWithoutHold(): number {
    return this.#settledElsewhere;
  }

  readonly #settled = (): void => {
    this.#unsettled--;
  };

  #isIdle(): boolean {
    return this.#unsettled === 0 && this.#trips === 0 && this.#loading === 0 && this.#pending.length === 0;
  }

  #checkDrained(): void {
    if (this.#whenDrained.length === 0 || !this.#isIdle()) return;
    for (const resolve of this.#whenDrained.splice(0)) resolve();
  }

  #available(): boolean {
    if (!this.#batches.ready || this.#unsettled - this.#refused.commands >= MAX_UNSETTLED) return false;
    return this.#health.suspect ? this.#trips === 0 : this.#pending.length < MAX_PENDING;
  }

  /** A shard that refuses settlements must not admit calls: they could not be settled either. */
  #isRefused({ accountId }: Buyer): boolean {
    return this.#refused.isRefusing(this.keys.shardOf(accountId));
  }

  #enqueue(command: Command): void {
    this.#pending.push(command);
    this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // setImmediate runs right after this turn has read its sockets, so one trip carries the commands of all calls just read.
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#flushedSince = true;
    this.#awaitsTrip = this.#trips >= MAX_TRIPS;
    if (this.#awaitsTrip) return;
    // After a sleep longer than its lease, the gateway must renew the lease in the same trip as its next admission. Otherwise the
    // sweep could see the new hold beside the expired lease, and end it as the hold of a dead gateway.
    const renewals = this.#batches.ready && this.#lease.renew() ? this.#renewals() : NONE;
    const pending = this.#takePending(Math.max(0, (MAX_TRIPS - this.#trips) * MAX_BATCH - renewals.length));
    this.#awaitsTrip = this.#pending.length > 0;
    if (renewals.length > 0) pending.unshift(...renewals);
    for (let from = 0; from < pending.length; from += MAX_BATCH) {
      this.#send(from === 0 && pending.length <= MAX_BATCH ? pending : pending.slice(from, from + MAX_BATCH));
    }
  };

  /** Takes up to `most` pending commands. The rest stays pending until a trip ends. */
  #takePending(most: number): Command[] {
    const pending = this.#pending;
    this.#pending = pending.length > most ? pending.splice(most) : [];
    return pending;
  }

  #renewals(): Command[] {
    return this.#owners.leased().flatMap((instance) => this.#shards.map((shard) => new LeaseCommand(shard, instance)));
  }

  #send(commands: readonly Command[]): void {
    const batch = this.#batch;
    const owner = this.#owners.present;
    batch.begin(owner.instance);
    for (const command of commands) command.encode(batch, this);
    this.#trips++;
    const { replies } = batch;
    this.#batches.send(batch.end(), {
      onReply: (bytes, start, end) => {
        const numbers = readReply(bytes, start, end, replies);
        if (numbers instanceof Error) this.#onLost(commands, owner, numbers);
        else this.#onReply(commands, owner, numbers);
      },
      onLost: (error) => this.#onLost(commands, owner, error),
    });
  }

  #onReply(commands: readonly Command[], owner: HoldOwner, numbers: readonly number[]): void {
    this.#trips--;
    const wasSuspect = this.#health.suspect;
    this.#health.replied();
    this.#ownerOfTrip = owner;
    let at = 0;
    for (const command of commands) at = command.onReply(numbers, at, this);
    if (wasSuspect) this.#retries.hurry();
    if (this.#awaitsTrip) this.#scheduleFlush();
    this.#checkDrained();
  }

  #onLost(commands: readonly Command[], owner: HoldOwner, error: Error): void {
    this.#trips--;
    this.#lease.expire();
    const sent = !(error instanceof RedisNotSent);
    if (sent) this.#health.lost(error);
    this.#ownerOfTrip = owner;
    for (const command of commands) command.onLost(sent, this);
    // The pending commands may have waited as long as this trip was under way; they must not wait for another timeout.
    for (const command of this.#pending.splice(0)) command.onLost(false, this);
    this.#checkDrained();
  }
}

const NONE: readonly Command[] = [];
