import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls } from 'node:tls';
import { foreignRedis, guardedClaim, INSTALLATION_KEY, isNews } from './installation.ts';
import { RedisNotSent, type Script } from './redis.ts';
import { addressOf } from './redis-node.ts';
import { ReplyFault, type ReplyKind, ReplyReader, type ReplySink } from './redis-replies.ts';
import type { TripEncoder } from './trip-encoder.ts';

export type ScriptConnectionOptions = {
  /** `redis[s]://[[user]:password@]host[:port][/database]` */
  readonly url: string;
  readonly name: string;
  readonly script: Script;
  /** The installation whose data Redis must have; without it nothing is compared. */
  readonly installation?: string;
  /** A trip that has no reply after this time is lost; whether Redis carried it out is then unknown. */
  readonly commandTimeoutMs: number;
  readonly meter?: TripMeter | undefined;
};

/** Counts the trips of one node, for operators. Reading the clock and counting takes 0.05 µs a trip (decision 0054). */
export interface TripMeter {
  answered(us: number): void;
  /** The node answered with an error, such as MOVED. */
  refused(): void;
  lost(): void;
}

/** Waits for the outcome of a trip. Exactly one of the two methods is called, once. */
export interface TripListener {
  /** The script replied with the text in `bytes[start, end)`. The bytes are valid until this method returns. */
  onReply(bytes: Buffer, start: number, end: number): void;
  /** No reply, or an error. After `RedisNotSent` the trip was certainly not carried out. */
  onLost(error: Error): void;
}

type Log = { warn(fields: object, message: string): void };

/** A reply that has not come yet. */
type Pending = {
  readonly listener: TripListener;
  /**
   * The trip's bytes, to send again if Redis does not know the script. Null after that, and for the commands that open the
   * connection.
   */
  wire: Buffer | null;
  /** False for the commands that open the connection. */
  readonly isTrip: boolean;
  readonly sentAt: number;
  /** True once the listener was told that the trip is lost. A reply that still comes is then ignored. */
  isLost: boolean;
};

const CONNECT_TIMEOUT_MS = 2_000;
/** After this many timeouts without a due reply, the connection is dropped: Redis's host may be gone. */
const SILENT_TIMEOUTS = 3;
/** How many times per timeout the connection looks for overdue replies: it notices one at most 1/8 of the timeout late. */
const LOOKS_PER_TIMEOUT = 8;
/**
 * The first and the longest pause before a new attempt to connect. The pauses prevent a tight loop while Redis is away. The gateway
 * is connected at most 250 ms after Redis is back. After a network outage that lost packets it can take 1.25 s: the kernel repeats
 * an attempt once, after 1 s, before CONNECT_TIMEOUT_MS ends it and the longest pause follows.
 */
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 250;

/**
 * A connection for one script only: it sends commands that are already encoded, and passes on each reply as a range of the read
 * buffer, without copying it. For each trip, ioredis makes a command, two timers, a promise chain and a string, and reads through a
 * stream. A call cost the gateway 42.2 µs with ioredis and 37.5 µs with this class when a trip served five calls.
 *
 *   closed ──► connecting ──► opening (AUTH, SELECT, whose data?, SCRIPT LOAD, an empty trip) ──► ready
 *      ▲            └──────────────┴───── any failure: pending trips are lost ◄─────────┘
 *      └── again after 50 … 250 ms
 *
 * It never sends a trip twice by itself (docs/design.md, 'Redis'): a script that moves money must not run twice because a
 * socket broke. The one exception is the error 'no such script', which says that Redis carried out nothing.
 */
export class ScriptConnection implements ReplySink {
  readonly #options: ScriptConnectionOptions;
  readonly #url: URL;
  readonly #meter: TripMeter | undefined;
  readonly #log: Log;
  readonly #buffer = Buffer.allocUnsafeSlow(65_536);
  readonly #listeners: (() => void)[] = [];
  #socket: Socket | null = null;
  #reader = new ReplyReader(this);
  #isReady = false;
  /** The replies that are due, in the order in which their commands were sent: Redis replies in that order. */
  #pending: Pending[] = [];
  #ticker: NodeJS.Timeout | null = null;
  #retryTimer: NodeJS.Timeout | null = null;
  #openTimer: NodeJS.Timeout | null = null;
  #attempts = 0;
  #reported: Error | null = null;
  #isClosed = false;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;
  #whenClosed: (() => void) | null = null;
  #firstTry: { resolve(): void; reject(error: Error): void } | null = null;

  constructor(options: ScriptConnectionOptions, log: Log) {
    this.#options = options;
    this.#url = new URL(options.url);
    this.#meter = options.meter;
    this.#log = log;
  }

  /** Connects, or rejects with the reason: at start, an operator wants to see the error rather than a silent retry. */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#firstTry = { resolve, reject };
      this.#dial();
    });
  }

  /** Connects, and keeps trying. Used for a node that a cluster has named. */
  connectInBackground(): void {
    this.#dial();
  }

  /** Calls `listener` each time the connection becomes ready, including the first. */
  onReady(listener: () => void): void {
    this.#listeners.push(listener);
  }

  get ready(): boolean {
    return this.#isReady;
  }

  /** Drops the connection and makes a new one, which asks again whose data Redis has. */
  reconnect(reason: Error): void {
    this.#drop(reason);
  }

  /** Sends a trip: Redis runs the script with the KEYS and ARGV that were encoded into it. */
  send(trip: TripEncoder, listener: TripListener): void {
    this.sendWire(trip.take(this.#options.script.sha), listener);
  }

  /** Sends a trip that is encoded already. @param isTrip false for a command that belongs to trips and is not counted as one */
  sendWire(wire: Buffer, listener: TripListener, isTrip = true): void {
    if (this.#isReady) this.#write(wire, listener, wire, isTrip);
    else listener.onLost(new RedisNotSent());
  }

  /** Everything that `send` sends during `work` leaves in one write. */
  inOneWrite(send: () => void): void {
    const socket = this.#socket;
    socket?.cork();
    send();
    socket?.uncork();
  }

  /** Accepts no more trips, waits for those under way (each for at most the timeout), then drops the connection. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#isReady = false;
    if (this.#retryTimer !== null) clearTimeout(this.#retryTimer);
    this.#closed ??= new Promise((resolve) => {
      this.#whenClosed = resolve;
      this.#endIfIdle();
    });
    return this.#closed;
  }

  /** For `close`: ends the connection once no trip is under way. */
  #endIfIdle(): void {
    if (this.#whenClosed === null || this.#pending.some(({ isLost }) => !isLost)) return;
    this.#rest();
    this.#drop(new Error('Connection is closed.'));
    this.#whenClosed();
  }

  /** Called by the reply reader. */
  onReply(kind: ReplyKind, bytes: Buffer, start: number, end: number): void {
    const pending = this.#pending.shift();
    if (pending === undefined) throw new ReplyFault('redis sent a reply that nobody waits for');
    if (kind === 'error') this.#onError(pending, bytes.toString('utf8', start, end));
    else if (!pending.isLost) {
      if (pending.isTrip) this.#meter?.answered(((performance.now() - pending.sentAt) * 1_000) | 0);
      pending.listener.onReply(bytes, start, end);
    }
    this.#endIfIdle();
  }

  #onError(pending: Pending, message: string): void {
    if (pending.isLost) return;
    if (message.startsWith('NOSCRIPT') && pending.wire !== null) {
      this.#loadAndRepeat(pending.listener, pending.wire);
      return;
    }
    if (pending.isTrip) this.#meter?.refused();
    pending.listener.onLost(new Error(message));
    // READONLY: the primary has become a replica. A new connection finds the new primary.
    if (message.startsWith('READONLY')) this.#drop(new Error(message));
  }

  #write(wire: Buffer, listener: TripListener, again: Buffer | null, isTrip: boolean): void {
    this.#pending.push({ listener, wire: again, isTrip, sentAt: performance.now(), isLost: false });
    this.#socket?.write(wire);
    if (this.#ticker === null) this.#watch();
  }

  #watch(): void {
    this.#ticker = setInterval(this.#onTick, this.#options.commandTimeoutMs / LOOKS_PER_TIMEOUT);
    this.#ticker.unref();
  }

  #rest(): void {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    this.#ticker = null;
  }

  /** For a Redis that does not know the script (any more). It has carried out nothing, so the trip is sent again, once. */
  #loadAndRepeat(listener: TripListener, wire: Buffer): void {
    this.#command(['SCRIPT', 'LOAD', this.#options.script.source], nothing);
    this.#write(wire, listener, null, true);
  }

  /** Sends one of the commands that open the connection. If it fails with an error that `matters`, the connection is dropped. */
  #command(args: readonly string[], onDone: () => void, matters: (error: Error) => boolean = always): void {
    const listener = {
      onReply: onDone,
      onLost: (error: Error) => {
        const { installation } = this.#options;
        const foreign = installation === undefined ? null : foreignRedis(error.message, installation);
        if (matters(error)) this.#drop(foreign ?? error);
      },
    };
    const encoded = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`);
    this.#write(Buffer.from(`*${args.length}\r\n${encoded.join('')}`), listener, null, false);
  }

  #dial(): void {
    this.#retryTimer = null;
    this.#reader = new ReplyReader(this);
    const { hostname, port, protocol } = this.#url;
    const host = hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
    const onread = { buffer: this.#buffer, callback: this.#onRead };
    const to = { host, port: Number(port || 6379), noDelay: true, onread };
    const isTls = protocol === 'rediss:';
    // Node accepts `onread` for TLS as well, but its types do not say so.
    const socket = isTls
      ? connectTls({ ...to, ...(isIP(host) === 0 ? { servername: host } : {}) } as object)
      : connectTcp(to);
    this.#socket = socket;
    socket.on(isTls ? 'secureConnect' : 'connect', () => this.#open());
    socket.on('error', (error) => {
      // Errors of a socket that was dropped before are ignored: `#failure` is for the present socket.
      if (this.#socket === socket) this.#failure ??= error;
    });
    socket.on('close', () => this.#onClose(socket));
    this.#openTimer = setTimeout(() => this.#drop(new Error('connect ETIMEDOUT')), CONNECT_TIMEOUT_MS);
    this.#openTimer.unref();
  }

  /** Opens the connection before trips are sent. The empty trip at the end fails while Redis is loading data or is a replica. */
  #open(): void {
    const { username, password, pathname } = this.#url;
    const { name, script, installation } = this.#options;
    const user = decodeURIComponent(username);
    if (password !== '') {
      this.#command(
        ['AUTH', ...(user === '' ? [] : [user]), decodeURIComponent(password)],
        nothing,
        failsTheConnection,
      );
    }
    if (pathname.length > 1) this.#command(['SELECT', pathname.slice(1)], nothing);
    // The name helps an operator who lists the clients. An ACL may forbid the command, so its failure is ignored.
    this.#command(['CLIENT', 'SETNAME', name], nothing, never);
    // Comparing the id once per connection is enough here. batch.lua charges only wallets and keys that were loaded. The client
    // that loads them (redis.ts) compares the id in the same step, and a FLUSHALL that removes the id also removes the loaded data.
    if (installation !== undefined) {
      this.#command(['EVAL', guardedClaim.source, '1', INSTALLATION_KEY, installation], nothing);
    }
    this.#command(['SCRIPT', 'LOAD', script.source], nothing);
    this.#command(['EVALSHA', script.sha, '0', name], () => this.#onOpen());
  }

  #onOpen(): void {
    if (this.#openTimer !== null) clearTimeout(this.#openTimer);
    if (this.#isClosed) return;
    this.#isReady = true;
    this.#attempts = 0;
    this.#failure = null;
    if (this.#reported !== null) this.#log.warn(this.#names, 'redis connection is back');
    this.#reported = null;
    this.#firstTry?.resolve();
    this.#firstTry = null;
    for (const listener of this.#listeners) listener();
  }

  readonly #onRead = (length: number): boolean => {
    try {
      this.#reader.read(this.#buffer, length);
    } catch (error) {
      // Any other error comes from our own code that handled the reply: a bug.
      if (!(error instanceof ReplyFault)) throw error;
      this.#drop(error);
    }
    return true;
  };

  #drop(reason: Error): void {
    const socket = this.#socket;
    if (socket === null) return;
    this.#failure ??= reason;
    socket.destroy();
    this.#onClose(socket);
  }

  #onClose(socket: Socket): void {
    if (this.#socket !== socket) return;
    this.#socket = null;
    this.#isReady = false;
    if (this.#openTimer !== null) clearTimeout(this.#openTimer);
    const reason = this.#failure ?? new Error('Connection is closed.');
    this.#failure = null;
    this.#report(reason);
    if (!this.#isClosed) this.#retry();
    const lost = this.#pending;
    this.#pending = [];
    for (const pending of lost) {
      if (pending.isLost) continue;
      // `isLost` prevents a listener from being told twice. #giveUpOverdue may be iterating over the same trips: it drops the
      // connection, and so gets here, if a command that opens the connection is overdue.
      this.#lose(pending, reason);
    }
    this.#endIfIdle();
  }

  #report(reason: Error): void {
    if (this.#firstTry !== null) {
      this.#isClosed = true;
      this.#firstTry.reject(reason);
      this.#firstTry = null;
      return;
    }
    // Every failed attempt comes here; one log line when the state changes is enough.
    if (this.#isClosed || !isNews(reason, this.#reported)) return;
    this.#reported = reason;
    this.#log.warn({ err: reason, ...this.#names }, 'redis connection lost or refused');
  }

  get #names() {
    return { redis: this.#options.name, node: addressOf(this.#url.href) };
  }

  #retry(): void {
    this.#attempts++;
    this.#retryTimer = setTimeout(() => this.#dial(), Math.min(FIRST_RETRY_MS * this.#attempts, LONGEST_RETRY_MS));
  }

  /**
   * Looks for overdue replies. After a long turn of the event loop, a reply may look overdue although its bytes wait in the
   * socket. So trips are given up only after this turn has read its sockets (setImmediate). The timer stops when no reply is due.
   */
  readonly #onTick = (): void => {
    const oldest = this.#pending[0];
    if (oldest === undefined) this.#rest();
    else if (performance.now() - oldest.sentAt >= this.#options.commandTimeoutMs) {
      setImmediate(this.#giveUpOverdue);
    }
  };

  readonly #giveUpOverdue = (): void => {
    const { commandTimeoutMs } = this.#options;
    const now = performance.now();
    const oldest = this.#pending[0];
    if (oldest !== undefined && now - oldest.sentAt >= SILENT_TIMEOUTS * commandTimeoutMs) {
      this.#drop(new Error('Socket timeout.'));
      return;
    }
    for (const pending of this.#pending) {
      if (now - pending.sentAt < commandTimeoutMs) break;
      if (pending.isLost) continue;
      this.#lose(pending, new Error('Command timed out'));
    }
    this.#endIfIdle();
  };

  #lose(pending: Pending, reason: Error): void {
    pending.isLost = true;
    if (pending.isTrip) this.#meter?.lost();
    pending.listener.onLost(reason);
  }
}

const nothing = (): void => {};
const always = (): boolean => true;
const never = (): boolean => false;
/** Whether an error reply to AUTH drops the connection. One error does not: a password was sent although Redis needs none. */
const failsTheConnection = (error: Error): boolean => !error.message.includes('without any password configured');
