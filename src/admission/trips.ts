import { RedisNotSent } from '../platform/redis.ts';
import type { TripConnection } from '../platform/replicated-connection.ts';
import { BatchEncoder } from './batch-encoder.ts';
import { type Command, type CommandHost, LeaseCommand, type SettleCommand } from './commands.ts';
import { type HoldOwner, HoldOwners } from './hold-owners.ts';
import { LeaseClock } from './lease-clock.ts';
import { readReply } from './reply.ts';
import { TripHealth } from './trip-health.ts';

/**
 * Maximum number of commands in one trip; a longer batch is split into several trips. Redis runs one script at a time, so a long
 * trip would make all other clients of Redis wait.
 */
export const MAX_BATCH = 128;
/**
 * Maximum number of trips under way. Beyond it, commands wait until a trip ends, and then share the next trip. With more
 * simultaneous trips, each would carry fewer commands, and a small batch costs Redis more per command.
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
export const MAX_PENDING = 32_768;
/**
 * Interval at which the gateway renews its leases. INSTANCE_LEASE_SECONDS (15 by default, 10 at least) leaves time for several
 * renewals, so that one may be lost.
 */
export const LEASE_RENEW_MS = 3_000;
/**
 * Interval at which a timer checks the waiting settlements of charged calls. They wait for an admission or a refund whose trip they
 * can share, because nobody waits for a charge to be settled. No settlement waits longer than two intervals. If the gateway is
 * killed before it sends a settlement, the sweep finds the hold and refunds the call. A refund never waits: its caller may need the
 * money to try again.
 */
const SETTLE_EVERY_MS = 10;
/** With this many commands pending, settlements no longer wait to share a trip: the batch is large enough to be worth its own. */
const ENOUGH_SETTLEMENTS = 32;

type TripsOptions = {
  readonly batches: Pick<TripConnection, 'ready' | 'onReady' | 'send'>;
  /** The shards in which leases are renewed. */
  readonly shards: readonly number[];
  readonly instance: string;
  readonly host: CommandHost;
  /** Called each time Redis has confirmed the end of a call. */
  readonly onCallEnded: () => void;
  /** Called when Redis answers again after a lost trip, and when there is a new connection to it. */
  readonly onBack: () => void;
  readonly onTripEnd: () => void;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * The waiting commands, and the trips that carry them to batch.lua and bring back their replies. Renews the leases of the holds
 * that these trips open.
 */
export class Trips {
  readonly #options: TripsOptions;
  readonly #batches: TripsOptions['batches'];
  readonly #batch = new BatchEncoder();
  readonly #owners: HoldOwners;
  readonly #health: TripHealth;
  readonly #lease = new LeaseClock(LEASE_RENEW_MS);
  #pending: Command[] = [];
  #underWay = 0;
  #scheduled = false;
  /** True when the last flush left commands in `#pending`, because MAX_TRIPS were under way. The end of a trip flushes again. */
  #awaitsTrip = false;
  #settleTimer: NodeJS.Timeout | null = null;
  /** True when a flush came after `#settleTimer` was set. It sends the older settlements, at once or when a trip ends. */
  #flushedSince = false;
  #leaseTimer: NodeJS.Timeout | null = null;
  #ownerOfTrip: HoldOwner;

  constructor(options: TripsOptions) {
    this.#options = options;
    this.#batches = options.batches;
    this.#owners = new HoldOwners(options.instance, options.onCallEnded);
    this.#ownerOfTrip = this.#owners.present;
    this.#health = new TripHealth(options.log);
  }

  /** Starts a timer that renews the leases even if there are no calls with which to renew them. */
  start(): void {
    this.#leaseTimer = setInterval(() => this.schedule(), LEASE_RENEW_MS);
    this.#leaseTimer.unref();
    // Redis may have been away for longer than a lease: renew at once, so that the sweep sees that this gateway is alive.
    this.#batches.onReady(() => {
      this.#owners.reconnected();
      this.#lease.expire();
      this.#options.onBack();
      this.schedule();
    });
    this.schedule();
  }

  /** Stops renewing leases. */
  stop(): void {
    if (this.#leaseTimer !== null) clearInterval(this.#leaseTimer);
  }

  /** Whether Redis carries out commands. When there are no calls, the renewals of the leases show it. */
  get answering(): boolean {
    return this.#batches.ready && this.#health.answeredWithin(2 * LEASE_RENEW_MS);
  }

  /** True from a lost trip to the next reply. */
  get suspect(): boolean {
    return this.#health.suspect;
  }

  /** Whether new commands of callers may join. While Redis is suspect, they may only while no trip is under way. */
  get accepting(): boolean {
    if (!this.#batches.ready) return false;
    return this.#health.suspect ? this.#underWay === 0 : this.#pending.length < MAX_PENDING;
  }

  get isIdle(): boolean {
    return this.#underWay === 0 && this.#pending.length === 0;
  }

  /** Owner of the holds that were opened by the trip whose reply is being read. */
  get ownerOfTrip(): HoldOwner {
    return this.#ownerOfTrip;
  }

  /** The command is sent at the end of this turn. */
  add(command: Command): void {
    this.#pending.push(command);
    this.schedule();
  }

  /**
   * A settlement is sent with the next command. If it charges something, it waits for that command up to 20 ms. It does not wait if
   * it ends a claim, for which a repeat of the call may be waiting.
   */
  addSettlement(command: SettleCommand): void {
    this.#pending.push(command);
    if (this.#scheduled) return;
    if (command.refund || command.claim !== null || this.#pending.length >= ENOUGH_SETTLEMENTS) this.schedule();
    else if (this.#settleTimer === null) this.#watchSettlements();
  }

  #watchSettlements(): void {
    this.#flushedSince = false;
    this.#settleTimer = setTimeout(this.#onSettleTimer, SETTLE_EVERY_MS);
  }

  readonly #onSettleTimer = (): void => {
    this.#settleTimer = null;
    if (this.#pending.length === 0) return;
    // That flush sends the settlements that waited then, at once or when a trip ends. Later ones get their own interval.
    if (this.#flushedSince) this.#watchSettlements();
    else this.schedule();
  };

  /** Everything that waits is sent at the end of this turn, including renewals of leases that are due. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // setImmediate runs right after this turn has read its sockets, so one trip carries the commands of all calls just read.
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    this.#flushedSince = true;
    this.#awaitsTrip = this.#underWay >= MAX_TRIPS;
    if (this.#awaitsTrip) return;
    // After a sleep longer than its lease, the gateway must renew the lease in the same trip as its next admission. Otherwise the
    // sweep could see the new hold beside the expired lease, and end it as the hold of a dead gateway.
    const renewals = this.#batches.ready && this.#lease.renew() ? this.#renewals() : NONE;
    const pending = this.#takePending(Math.max(0, (MAX_TRIPS - this.#underWay) * MAX_BATCH - renewals.length));
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
    const { shards } = this.#options;
    return this.#owners.leased().flatMap((instance) => shards.map((shard) => new LeaseCommand(shard, instance)));
  }

  #send(commands: readonly Command[]): void {
    const { host } = this.#options;
    const batch = this.#batch;
    const owner = this.#owners.present;
    batch.begin(owner.instance);
    for (const command of commands) command.encode(batch, host);
    this.#underWay++;
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
    const { host, onBack, onTripEnd } = this.#options;
    this.#underWay--;
    const wasSuspect = this.#health.suspect;
    this.#health.replied();
    this.#ownerOfTrip = owner;
    let at = 0;
    for (const command of commands) at = command.onReply(numbers, at, host);
    if (wasSuspect) onBack();
    if (this.#awaitsTrip) this.schedule();
    onTripEnd();
  }

  #onLost(commands: readonly Command[], owner: HoldOwner, error: Error): void {
    const { host, onTripEnd } = this.#options;
    this.#underWay--;
    this.#lease.expire();
    const sent = !(error instanceof RedisNotSent);
    if (sent) this.#health.lost(error);
    this.#ownerOfTrip = owner;
    for (const command of commands) command.onLost(sent, host);
    // The pending commands may have waited for as long as this trip was under way. They must not wait for another timeout.
    for (const command of this.#pending.splice(0)) command.onLost(false, host);
    onTripEnd();
  }
}

const NONE: readonly Command[] = [];
