import { RedisNotSent } from './redis.ts';
import { ScriptConnection, type ScriptConnectionOptions, type TripListener } from './script-connection.ts';
import type { TripEncoder } from './trip-encoder.ts';

/** The common interface of `ScriptConnection` and `ReplicatedConnection`: a connection for trips of one script. */
export type TripConnection = Pick<
  ScriptConnection,
  'connect' | 'connectInBackground' | 'onReady' | 'ready' | 'reconnect' | 'send' | 'sendWire' | 'close'
>;

/** How many replicas must have a trip, and how often too few had it in time. All connections of a process share one object. */
export class ReplicaDemand {
  readonly replicas: number;
  /** How long Redis may wait for them. */
  readonly timeoutMs: number;
  /** Trips that too few replicas had in time, or that Redis refused because it has too few (`min-replicas-to-write`). */
  missed = 0;

  constructor(replicas: number, commandTimeoutMs: number) {
    this.replicas = replicas;
    // A trip may arrive while another one is waiting. With half of the timeout for each, it ends within the whole timeout. If Redis
    // itself is slow, and then falls silent, it takes up to twice the timeout.
    this.timeoutMs = Math.max(1, Math.floor(commandTimeoutMs / 2));
  }
}

/** Redis has carried out a trip, but too few replicas have it. A failover may lose it, so its outcome is unknown. */
export class TooFewReplicas extends Error {
  constructor(had: number, { replicas, timeoutMs }: ReplicaDemand) {
    super(`${had} replicas had a batch after ${timeoutMs} ms, but REDIS_WAIT_REPLICAS is ${replicas}`);
    this.name = 'TooFewReplicas';
  }
}

type Log = { warn(fields: object, message: string): void };

/** @param demand null: trips count as soon as Redis has carried them out */
export function tripConnection(
  options: ScriptConnectionOptions,
  log: Log,
  demand: ReplicaDemand | null,
): TripConnection {
  const connection = new ScriptConnection(options, log);
  return demand === null ? connection : new ReplicatedConnection(connection, options.script.sha, demand);
}

type HeldTrip = { readonly wire: Buffer; readonly listener: TripListener };

/**
 * A connection whose trips count only when enough replicas have them (REDIS_WAIT_REPLICAS).
 *
 *   trips ──► held ──► [ EVALSHA … EVALSHA, WAIT ] in one write ──► replies kept ──► WAIT's number
 *              ▲                                                                      │ enough: the replies are passed on
 *              └── while a WAIT is under way ◄────────────────────────────────────────┘ too few: the trips are lost
 *
 * While a connection waits, Redis reads none of its further commands. If trips were sent one by one, each would wait for all WAITs
 * before its own. So trips that arrive meanwhile are kept here and share the next WAIT: a trip takes at most two waits, however
 * many there are. If too few replicas have a group, the kept trips have not been sent, and are refused as such: they need not find
 * out the same.
 *
 * A trip that writes nothing, such as a repeated settlement, must not count before the data it relies on have reached the replicas.
 * Redis up to 7.0 waits for everything that it had written when the trip ran. Later versions, and Valkey, wait for the last write
 * of this connection. That is enough: a new connection begins with renewals of leases (trips.ts), which are written after
 * everything that an earlier connection wrote.
 *
 * Tested by test/platform/replicated-connection.test.ts and test/integration/replicas.test.ts.
 */
class ReplicatedConnection implements TripConnection {
  readonly #connection: ScriptConnection;
  readonly #sha: string;
  readonly #demand: ReplicaDemand;
  readonly #wait: Buffer;
  #held: HeldTrip[] = [];
  #group: Group | null = null;
  #isScheduled = false;

  /** @param sha digest of the script that the connection runs */
  constructor(connection: ScriptConnection, sha: string, demand: ReplicaDemand) {
    this.#connection = connection;
    this.#sha = sha;
    this.#demand = demand;
    const args = ['WAIT', String(demand.replicas), String(demand.timeoutMs)];
    this.#wait = Buffer.from(`*3\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`);
  }

  connect(): Promise<void> {
    return this.#connection.connect();
  }

  connectInBackground(): void {
    this.#connection.connectInBackground();
  }

  onReady(listener: () => void): void {
    this.#connection.onReady(listener);
  }

  get ready(): boolean {
    return this.#connection.ready;
  }

  reconnect(reason: Error): void {
    this.#connection.reconnect(reason);
  }

  send(trip: TripEncoder, listener: TripListener): void {
    this.sendWire(trip.take(this.#sha), listener);
  }

  sendWire(wire: Buffer, listener: TripListener): void {
    if (!this.ready) {
      listener.onLost(new RedisNotSent());
      return;
    }
    this.#held.push({ wire, listener });
    if (this.#group !== null || this.#isScheduled) return;
    this.#isScheduled = true;
    // Sent after the flush that is running, which may send more. The shards of a cluster flush one by one: the first goes alone,
    // and the others share the next WAIT.
    process.nextTick(this.#sendHeld);
  }

  close(): Promise<void> {
    const closed = this.#connection.close();
    this.#refuseHeld();
    return closed;
  }

  readonly #sendHeld = (): void => {
    this.#isScheduled = false;
    if (!this.ready) this.#refuseHeld();
    if (this.#held.length === 0) return;
    const trips = this.#held;
    this.#held = [];
    this.#connection.inOneWrite(() => {
      const group = new Group(trips.length, this.#demand);
      this.#group = group;
      for (const { wire, listener } of trips) this.#connection.sendWire(wire, group.listenerOf(listener));
      this.#sendWait(group);
    });
  };

  #sendWait(group: Group): void {
    const listener: TripListener = {
      onReply: (bytes, start, end) => this.#onWaited(group, Number(bytes.toString('latin1', start, end))),
      onLost: (error) => this.#onFailed(group, error),
    };
    this.#connection.sendWire(this.#wait, listener, false);
  }

  #onWaited(group: Group, had: number): void {
    if (!(had >= this.#demand.replicas)) {
      this.#demand.missed += group.answered;
      this.#onFailed(group, new TooFewReplicas(had, this.#demand));
      return;
    }
    group.passOn();
    if (group.unanswered > 0) {
      // Redis had forgotten the script, so the trip was sent again, after this WAIT.
      if (this.ready) this.#sendWait(group);
      // The connection is being closed. RedisNotSent would say that the trip was certainly not carried out.
      else this.#onFailed(group, new Error('Connection is closed.'));
      return;
    }
    this.#group = null;
    // After this turn, so that trips that its callers send next are in the next group.
    this.#isScheduled = true;
    setImmediate(this.#sendHeld);
  }

  #onFailed(group: Group, error: Error): void {
    if (this.#group === group) this.#group = null;
    group.lose(error);
    this.#refuseHeld();
  }

  #refuseHeld(): void {
    for (const { listener } of this.#held.splice(0)) listener.onLost(new RedisNotSent());
  }
}

type Answered = { readonly listener: TripListener; readonly reply: Buffer };

/** Trips that share a WAIT. */
class Group {
  /** Trips that have neither a reply nor an error yet. */
  unanswered: number;
  readonly #demand: ReplicaDemand;
  #answered: Answered[] = [];
  #error: Error | null = null;

  constructor(trips: number, demand: ReplicaDemand) {
    this.unanswered = trips;
    this.#demand = demand;
  }

  get answered(): number {
    return this.#answered.length;
  }

  listenerOf(listener: TripListener): TripListener {
    return {
      onReply: (bytes, start, end) => {
        this.unanswered--;
        // The bytes are those of the read buffer, so they must be copied to outlast this call.
        if (this.#error === null) this.#answered.push({ listener, reply: Buffer.from(bytes.subarray(start, end)) });
        else listener.onLost(this.#error);
      },
      // An error does not wait for replicas: Redis refused the trip, or its outcome is unknown anyway.
      onLost: (error) => {
        this.unanswered--;
        if (error.message.startsWith('NOREPLICAS')) this.#demand.missed++;
        listener.onLost(error);
      },
    };
  }

  passOn(): void {
    for (const { listener, reply } of this.#answered.splice(0)) listener.onReply(reply, 0, reply.length);
  }

  lose(error: Error): void {
    this.#error = error;
    for (const { listener } of this.#answered.splice(0)) listener.onLost(error);
  }
}
