import { type Damage, DamageLog } from '../ledger/damage-log.ts';
import { SparseWarning } from '../observability/sparse-warning.ts';
import { RedisNotSent } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import type { ScriptConnection } from '../platform/script-connection.ts';
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

/** Commands in one trip. Redis is single-threaded: a longer batch makes everybody else wait. */
const MAX_BATCH = 128;
/** Trips under way. Beyond it commands gather for the next one: smaller batches would only cost Redis more. */
const MAX_TRIPS = 16;
/**
 * Commands that gather, for at most the command timeout; beyond it a new call is refused. It must be more than a turn of the
 * loop can bring, the end of one call and the begin of the next for each caller: who is refused within a turn calls again within
 * it, and nothing that gathered is sent before it ends. With 8 192, as many callers of a closed loop kept each other in turns of
 * a second, and four of five of their calls were refused (5 200 served a second, 15 300 with this).
 */
const MAX_PENDING = 32_768;
/** How often the lease is renewed; well below INSTANCE_LEASE_SECONDS. */
const LEASE_RENEW_MS = 3_000;
/**
 * Interval at which settlements that wait for an admission to share its trip are looked at; none waits longer than two of them.
 * Nobody waits for a charge to be settled, and while calls are few each settlement had a trip of its own. A gateway that is killed
 * meanwhile leaves the hold to the sweep, which refunds the call. A refund never waits: its caller may need the money to try again.
 */
const SETTLE_EVERY_MS = 10;
/** Settlements that do not wait any longer: with so many a trip is worth its price. */
const ENOUGH_SETTLEMENTS = 32;
/**
 * Calls whose end is not confirmed. Beyond it no new call is admitted: Redis must catch up first. As many as may gather. Those of
 * a damaged shard do not count: they wait for an operator, and may not stop the calls of other shards.
 */
const MAX_UNSETTLED = MAX_PENDING;

/** Fills Redis from Postgres when the script says 'not loaded'. Rejects when Postgres is away. */
export interface StateLoader {
  loadKey(keyId: string, accountId: string): Promise<void>;
  loadWallet(accountId: string): Promise<void>;
}

export type AdmissionOptions = {
  /** Runs batch.lua. */
  readonly batches: ScriptConnection;
  readonly keys: RedisKeys;
  /** Identifies this gateway process; new at each start. */
  readonly instance: string;
  readonly loader: StateLoader;
  /** Settlement recorded for a call whose admission had no reply (see ledger/usage-event.ts). */
  readonly cancelSettlement: string;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * Collects admissions and settlements and carries them out in one script: admissions and refunds at the end of their event-loop
 * turn, settlements of charged calls with the next of them, or after 20 ms at the latest.
 *
 *   admit() take() settle()          flush (end of the turn)              reply
 *        │                                   │                              │
 *        └──► pending: op op op ──────► one EVALSHA ──────────────► op.onReply(reply, at)
 *                  ▲                         │ lost
 *                  └── settlements again ◄───┴──► admissions: 'unavailable', and cancelled by id
 */
export class Admission implements CommandHost {
  readonly keys: RedisKeys;
  readonly encodedKeys: EncodedKeys;
  readonly #batch = new BatchEncoder();
  readonly #batches: ScriptConnection;
  readonly #loader: StateLoader;
  readonly #cancelSettlement: string;
  #pending: Command[] = [];
  #scheduled = false;
  /** What is pending could not be sent at its flush: the end of a trip sends it. */
  #isHeldUp = false;
  #settleTimer: NodeJS.Timeout | null = null;
  /** A flush since the timer was set took the settlements along that it was set for. */
  #flushedSince = false;
  #trips = 0;
  /** Settlements and cancellations that have no reply yet; drain() waits for them. */
  #unsettled = 0;
  /** Commands that wait for Postgres. */
  #loading = 0;
  #settledElsewhere = 0;
  readonly #owners: HoldOwners;
  /** Of the trip whose outcome is being told to its commands. */
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

  /** Starts renewing the lease while there are no calls to do it with. */
  start(): void {
    this.#leaseTimer = setInterval(() => this.#scheduleFlush(), LEASE_RENEW_MS);
    this.#leaseTimer.unref();
    // Redis may have been away for longer than a lease: the sweep must see at once that this gateway was not.
    this.#batches.onReady(() => {
      this.#owners.reconnected();
      this.#lease.expire();
      // Their next attempt may be a second away: it was put off while there was nobody to send to.
      this.#retries.hurry();
      this.#scheduleFlush();
    });
    this.#scheduleFlush();
  }

  /** Whether Redis carries out what this gateway sends: at the latest the renewal of the lease shows it. */
  get answering(): boolean {
    return this.#batches.ready && this.#health.answeredWithin(2 * LEASE_RENEW_MS);
  }

  /** What calls of the key need besides; to be kept with it. */
  buyer(keyId: string, accountId: string): Buyer {
    return this.encodedKeys.buyer(keyId, accountId);
  }

  /** Decides a call: key state, token, free slot or wallet, open hold; all or nothing. Charges at most once per usage id. */
  admit(request: AdmitRequest, listener: AdmissionListener): void {
    if (!this.#available() || (this.#refused.commands > 0 && this.#isRefused(request.buyer))) {
      listener.onAdmission({ outcome: 'unavailable' });
    } else this.#enqueue(new AdmitCommand(request, listener));
  }

  /** Takes one token of a key's bucket: what every request that is not a call costs. */
  takeForKey(keyId: string, accountId: string, done: (result: TakeResult) => void): void {
    if (!this.#available()) done({ outcome: 'unavailable' });
    else this.#enqueue(new TakeCommand(keyId, accountId, 0, done));
  }

  /** Takes one token of an address's bucket. */
  takeForAddress(address: string, limitPerMinute: number, done: (result: TakeResult) => void): void {
    if (!this.#available()) done({ outcome: 'unavailable' });
    else this.#enqueue(new TakeCommand(null, address, limitPerMinute, done));
  }

  /**
   * Ends an admitted call: one usage event, with the money given back when `refund`. Sent until Redis has confirmed it.
   *
   * @param owner of its hold, as `admit` said
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
    // What waits now came later, and has as good a chance of company.
    if (this.#flushedSince) this.#watchSettlements();
    else this.#scheduleFlush();
  };

  /** Calls whose end Redis has not confirmed yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /**
   * Resolves once every settlement is confirmed, or after `timeoutMs` with the number that is not. An admission that has no
   * answer yet may still need one: its caller was cut off.
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
    const { keyId, accountId } =
      command instanceof AdmitCommand ? command.request.buyer : { keyId: command.keyId, accountId: command.subject };
    const loaded =
      what === 'wallet' ? this.#loader.loadWallet(accountId) : this.#loader.loadKey(keyId as string, accountId);
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
    this.#refused.through(shard);
    this.#damage.shardWorks(shard);
  }

  foundDamage(what: Damage, accountId: string, usageId: string): void {
    this.#damage.found(what, accountId, usageId, this.keys.shardOf(accountId));
  }

  /** Commands that met damaged data, by what was damaged. */
  get damage(): ReadonlyMap<Damage, number> {
    return this.#damage.counts;
  }

  settledElsewhere(): void {
    this.#settledElsewhere++;
  }

  /** Settlements that found no hold: swept, or lost with the Redis that had it. Their calls are not charged by us. */
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

  /** What the shard cannot settle now, it may not admit. */
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
    // The check phase comes right after all sockets of this turn were read: one trip carries what they brought.
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#flushedSince = true;
    this.#isHeldUp = this.#trips >= MAX_TRIPS;
    if (this.#isHeldUp) return;
    // An instance that slept longer than its lease must renew it in the same trip as its next admission, or the sweep
    // could take a hold made by a live instance for one of the dead.
    const renewals = this.#batches.ready && this.#lease.renew() ? this.#renewals() : NONE;
    const pending = this.#takePending(Math.max(0, (MAX_TRIPS - this.#trips) * MAX_BATCH - renewals.length));
    this.#isHeldUp = this.#pending.length > 0;
    if (renewals.length > 0) pending.unshift(...renewals);
    for (let from = 0; from < pending.length; from += MAX_BATCH) {
      this.#send(from === 0 && pending.length <= MAX_BATCH ? pending : pending.slice(from, from + MAX_BATCH));
    }
  };

  /** The rest waits for the end of a trip. */
  #takePending(most: number): Command[] {
    const pending = this.#pending;
    this.#pending = pending.length > most ? pending.splice(most) : [];
    return pending;
  }

  #renewals(): Command[] {
    const shards = Array.from(this.keys.lease.keys());
    return this.#owners.leased().flatMap((instance) => shards.map((shard) => new LeaseCommand(shard, instance)));
  }

  #send(commands: readonly Command[]): void {
    const batch = this.#batch;
    const owner = this.#owners.present;
    batch.begin(owner.instance);
    for (const command of commands) command.encode(batch, this);
    this.#trips++;
    const { replies } = batch;
    this.#batches.run(batch.end(), {
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
    if (this.#isHeldUp) this.#scheduleFlush();
    this.#checkDrained();
  }

  #onLost(commands: readonly Command[], owner: HoldOwner, error: Error): void {
    this.#trips--;
    this.#lease.expire();
    const sent = !(error instanceof RedisNotSent);
    if (sent) this.#health.lost(error);
    this.#ownerOfTrip = owner;
    for (const command of commands) command.onLost(sent, this);
    // What gathered behind this trip has waited as long; it must not wait for another one.
    for (const command of this.#pending.splice(0)) command.onLost(false, this);
    this.#checkDrained();
  }
}

const NONE: readonly Command[] = [];
