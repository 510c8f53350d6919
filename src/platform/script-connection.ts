import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { connect as connectTls } from 'node:tls';
import { foreignRedis, guardedClaim, INSTALLATION_KEY, isNews } from './installation.ts';
import { RedisNotSent, type Script } from './redis.ts';
import { ReplyFault, type ReplyKind, ReplyReader, type ReplySink } from './redis-replies.ts';
import type { TripEncoder } from './trip-encoder.ts';

export type ScriptConnectionOptions = {
  /** `redis[s]://[[user]:password@]host[:port][/database]` */
  readonly url: string;
  readonly name: string;
  readonly script: Script;
  /** Whose data Redis must have; without it nothing is compared. */
  readonly installation?: string;
  /** A run without a reply for this long is lost; whether it was carried out is then unknown. */
  readonly commandTimeoutMs: number;
};

/** Who waits for a run. Exactly one of the two is called, once. */
export interface TripListener {
  /** The script replied the text in `bytes[start, end)`, which is there until this returns. */
  onReply(bytes: Buffer, start: number, end: number): void;
  /** No reply, or an error. `RedisNotSent`: certainly not carried out. */
  onLost(error: Error): void;
}

type Log = { warn(fields: object, message: string): void };

/** A reply that is due. */
type Pending = {
  readonly run: TripListener;
  /** To run once more should Redis not know the script; null: that was done. */
  wire: Buffer | null;
  readonly sentAt: number;
  /** Given up: its reply, should it come, is for nobody. */
  isLost: boolean;
};

const CONNECT_TIMEOUT_MS = 2_000;
/** A connection that stays silent for so many timeouts is given up: behind it may be a host that is gone. */
const SILENT_TIMEOUTS = 3;
/** How often timeouts are looked for: what is late is noticed late by this share of the timeout. */
const LOOKS_PER_TIMEOUT = 8;
/**
 * Back a quarter of a second after Redis. After a network that swallowed all, 1.25 s: the kernel asks again a second after it
 * began, and after the timeout above we do. No tight loop while Redis is away.
 */
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 250;

/**
 * A connection that does one thing: runs one script, whose calls come encoded and whose replies are read where they lie. Per
 * run ioredis makes a command, two timers, a promise chain and a string, and reads through a stream. At 16 connections, where
 * a run serves five calls, a call cost the gateway 42.2 µs with it and 37.5 with this; at 64, 29.1 and 27.1.
 *
 *   closed ──► connecting ──► opening (AUTH, SELECT, whose data?, SCRIPT LOAD, an empty run) ──► ready
 *      ▲            └──────────────┴───── any failure: what is pending is lost ◄──────┘
 *      └── again after 50 … 250 ms
 *
 * It never sends anything twice by itself (DESIGN.md, 'Redis'): a script that moves money must not run twice because a
 * socket broke. The one exception is 'no such script', which says that nothing was carried out.
 */
export class ScriptConnection implements ReplySink {
  readonly #options: ScriptConnectionOptions;
  readonly #url: URL;
  readonly #log: Log;
  readonly #buffer = Buffer.allocUnsafeSlow(65_536);
  readonly #listeners: (() => void)[] = [];
  #socket: Socket | null = null;
  #reader = new ReplyReader(this);
  #isReady = false;
  /** Replies come in the order of what was sent. */
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
    this.#log = log;
  }

  /** Connects, or fails with the reason: at start an operator wants the error, not a silent retry. */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#firstTry = { resolve, reject };
      this.#dial();
    });
  }

  /** Calls `listener` each time the connection is made, also the first. */
  onReady(listener: () => void): void {
    this.#listeners.push(listener);
  }

  get ready(): boolean {
    return this.#isReady;
  }

  /** Drops the connection and makes it anew, with everything that is asked then. */
  reconnect(reason: Error): void {
    this.#drop(reason);
  }

  /** Runs the script. */
  run(trip: TripEncoder, listener: TripListener): void {
    const wire = trip.take(this.#options.script.sha);
    if (this.#isReady) this.#send(wire, listener, wire);
    else listener.onLost(new RedisNotSent());
  }

  /** Takes no more runs, waits for what is under way as long as a run may take, and drops the connection. */
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

  /** For `close`: ends when nothing is under way any more. */
  #endIfIdle(): void {
    if (this.#whenClosed === null || this.#pending.some(({ isLost }) => !isLost)) return;
    this.#rest();
    this.#drop(new Error('Connection is closed.'));
    this.#whenClosed();
  }

  /** For the reader. */
  onReply(kind: ReplyKind, bytes: Buffer, start: number, end: number): void {
    const pending = this.#pending.shift();
    if (pending === undefined) throw new ReplyFault('redis sent a reply that nobody waits for');
    if (kind === 'error') this.#onError(pending, bytes.toString('utf8', start, end));
    else if (!pending.isLost) pending.run.onReply(bytes, start, end);
    this.#endIfIdle();
  }

  #onError(pending: Pending, message: string): void {
    if (pending.isLost) return;
    if (message.startsWith('NOSCRIPT') && pending.wire !== null) {
      this.#loadAndRepeat(pending.run, pending.wire);
      return;
    }
    pending.run.onLost(new Error(message));
    // A primary that became a replica: look for the new one.
    if (message.startsWith('READONLY')) this.#drop(new Error(message));
  }

  #send(wire: Buffer, run: TripListener, again: Buffer | null): void {
    this.#pending.push({ run, wire: again, sentAt: performance.now(), isLost: false });
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

  /** Redis was flushed of its scripts. Nothing was carried out, so it may be sent again, once. */
  #loadAndRepeat(run: TripListener, wire: Buffer): void {
    this.#command(['SCRIPT', 'LOAD', this.#options.script.source], nothing);
    this.#send(wire, run, null);
  }

  /** A command that opens the connection: a failure that matters drops it. */
  #command(args: readonly string[], onDone: () => void, matters: (error: Error) => boolean = always): void {
    const run = {
      onReply: onDone,
      onLost: (error: Error) => {
        const { installation } = this.#options;
        const foreign = installation === undefined ? null : foreignRedis(error.message, installation);
        if (matters(error)) this.#drop(foreign ?? error);
      },
    };
    const encoded = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`);
    this.#send(Buffer.from(`*${args.length}\r\n${encoded.join('')}`), run, null);
  }

  #dial(): void {
    this.#retryTimer = null;
    this.#reader = new ReplyReader(this);
    const { hostname, port, protocol } = this.#url;
    const host = hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
    const onread = { buffer: this.#buffer, callback: this.#onRead };
    const to = { host, port: Number(port || 6379), noDelay: true, onread };
    const isTls = protocol === 'rediss:';
    // Node takes `onread` for TLS as well; its types do not know it.
    const socket = isTls
      ? connectTls({ ...to, ...(isIP(host) === 0 ? { servername: host } : {}) } as object)
      : connectTcp(to);
    this.#socket = socket;
    socket.on(isTls ? 'secureConnect' : 'connect', () => this.#open());
    socket.on('error', (error) => {
      // Not of a connection that was given up: the next one's end has a reason of its own.
      if (this.#socket === socket) this.#failure ??= error;
    });
    socket.on('close', () => this.#onClose(socket));
    this.#openTimer = setTimeout(() => this.#drop(new Error('connect ETIMEDOUT')), CONNECT_TIMEOUT_MS);
    this.#openTimer.unref();
  }

  /** The empty run at the end fails as long as Redis is loading its data, or is a replica. */
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
    // For whoever looks at the list of clients; an ACL may forbid it.
    this.#command(['CLIENT', 'SETNAME', name], nothing, never);
    // Compared here only: nothing is admitted before the client that loads wallets and keys has compared as well, in one step
    // with loading them (redis.ts), and a flush takes what was loaded with it.
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
    if (this.#reported !== null) this.#log.warn({ redis: this.#options.name }, 'redis connection is back');
    this.#reported = null;
    this.#firstTry?.resolve();
    this.#firstTry = null;
    for (const listener of this.#listeners) listener();
  }

  readonly #onRead = (length: number): boolean => {
    try {
      this.#reader.read(this.#buffer, length);
    } catch (error) {
      // Anything else is a fault of ours in what was done with a reply.
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
      // First: what one of them does may lead to the others a second time.
      pending.isLost = true;
      pending.run.onLost(reason);
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
    // One line when the state changes is enough for a log.
    if (this.#isClosed || !isNews(reason, this.#reported)) return;
    this.#reported = reason;
    this.#log.warn({ err: reason, redis: this.#options.name }, 'redis connection lost or refused');
  }

  #retry(): void {
    this.#attempts++;
    this.#retryTimer = setTimeout(() => this.#dial(), Math.min(FIRST_RETRY_MS * this.#attempts, LONGEST_RETRY_MS));
  }

  /**
   * A turn of the loop that took long makes replies look late that lie in the socket already. So what is overdue gets the reads
   * of this turn before it is given up. While nothing is under way there is nothing to look for, and the timer rests.
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
      pending.isLost = true;
      pending.run.onLost(new Error('Command timed out'));
    }
    this.#endIfIdle();
  };
}

const nothing = (): void => {};
const always = (): boolean => true;
const never = (): boolean => false;
/** Whether the reply to AUTH ends the connection. A password that Redis does not ask for does no harm. */
const failsTheConnection = (error: Error): boolean => !error.message.includes('without any password configured');
