import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { AddressBook } from './address-book.ts';
import type { CoarseClock } from './coarse-clock.ts';
import type { Origin } from './endpoint.ts';
import type { TlsSessions } from './tls-sessions.ts';
import type { ResolvedAddress } from './types.ts';
import type { Failure, UpstreamErrorCode } from './upstream-error.ts';

export type ConnectorTools = {
  readonly addressBook: AddressBook;
  readonly clock: CoarseClock;
  readonly sessions: TlsSessions;
  readonly connectTimeoutMs: number;
  readonly tlsCa: string | Buffer | undefined;
};

export interface ConnectorOwner {
  /** The octets read are READ_BUFFER[0, length). They are overwritten after this returns. */
  onRead(length: number): void;
  onConnected(socket: Socket): void;
  onConnectFailed(failure: Failure): void;
}

/**
 * One read buffer for all connections of the process. With one buffer per connection, 5 000 open event streams would take 287 MB.
 * Sharing it is safe: libuv asks for memory, reads and calls back without returning to its loop in between, and TLS decrypts into a
 * buffer of its own and copies from there for each callback. So nothing else writes into the buffer until the callback returns.
 *
 * The size is 56 KiB because what is read is sent on at once, and Linux makes packets of at most 64 KiB including all headers.
 * With 64 KiB, each read left as one full packet and a tiny one, and each packet wakes the reader. CPU per GiB, where nginx
 * takes 1, by size of the buffer: 16 KiB 1.24, 32 KiB 0.93, 56 KiB 0.69, 64 KiB 1.67, 256 KiB 1.03.
 */
export const READ_BUFFER = Buffer.allocUnsafeSlow(56 * 1024);
/**
 * A connection that carries nothing for this long is probed by the operating system. Otherwise NAT gateways forget the connection
 * of a stream that is silent for minutes (Azure after 240 s, AWS after 350 s). When a service's machine does not answer ten
 * probes, sent one second apart, the connection counts as lost.
 */
const KEEP_ALIVE_PROBE_MS = 60_000;

/**
 * Makes one connection: resolves the name, then tries its addresses in order, each with an equal share of the time that is left.
 * It tries the next address when TCP fails, or when an attempt has used up its share of the time. After a TLS failure it does
 * not, because the host failed, not the way to it.
 *
 * Tested by test/upstream/tls.test.ts, timeouts.test.ts and pool.test.ts.
 */
export class Connector {
  readonly #origin: Origin;
  readonly #tools: ConnectorTools;
  readonly #owner: ConnectorOwner;
  readonly #startedTicks: number;
  #addresses: readonly ResolvedAddress[] = [];
  #next = 0;
  #attemptTicks = 0;
  #attemptMs = Number.POSITIVE_INFINITY;
  #attempt: Socket | null = null;
  #tcpConnected = false;
  #over = false;

  constructor(origin: Origin, tools: ConnectorTools, owner: ConnectorOwner) {
    this.#origin = origin;
    this.#tools = tools;
    this.#owner = owner;
    this.#startedTicks = tools.clock.ticks;
  }

  start(): void {
    void this.#tools.addressBook.resolve(this.#origin.hostname).then((resolution) => {
      if (this.#over) return;
      if (!resolution.ok) {
        this.#fail(resolution.failure);
        return;
      }
      this.#addresses = resolution.addresses;
      this.#tryNext();
    });
  }

  /** Called at every sweep: ends an attempt whose time has run out, and goes on to the next address or fails. */
  sweep(): void {
    const { clock, connectTimeoutMs } = this.#tools;
    const isTimeUp = clock.elapsedMs(this.#startedTicks) >= connectTimeoutMs;
    if (!isTimeUp && clock.elapsedMs(this.#attemptTicks) < this.#attemptMs) return;
    this.#drop();
    const { hostHeader } = this.#origin;
    if (!isTimeUp && this.#next < this.#addresses.length) this.#tryNext();
    else if (this.#addresses.length === 0)
      this.#fail({ code: 'dns_timeout', message: `${hostHeader} was not resolved in time` });
    else this.#fail({ code: 'connect_timeout', message: `${hostHeader} did not accept a connection in time` });
  }

  cancel(): void {
    this.#over = true;
    this.#drop();
  }

  #tryNext(): void {
    const address = this.#addresses[this.#next++] as ResolvedAddress;
    const { clock, connectTimeoutMs } = this.#tools;
    const leftMs = connectTimeoutMs - Math.max(0, clock.elapsedMs(this.#startedTicks));
    this.#attemptMs = leftMs / (this.#addresses.length - this.#next + 1);
    this.#attemptTicks = clock.ticks;
    this.#tcpConnected = false;
    const socket = this.#origin.protocol === 'http:' ? this.#dialTcp(address) : this.#dialTls(address);
    this.#attempt = socket;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
    socket.on('connect', this.#onConnect);
  }

  #dialTcp(address: ResolvedAddress): Socket {
    return connectTcp({ host: address.address, port: this.#origin.port, onread: this.#onread() });
  }

  #dialTls(address: ResolvedAddress): Socket {
    const { hostname, port, key } = this.#origin;
    const { sessions, tlsCa } = this.#tools;
    const options: ConnectionOptions = {
      host: address.address,
      port,
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      // Node accepts `onread` here, but the types of Node 20 do not have it.
      ...({ onread: this.#onread() } as object),
    };
    // A name is sent as SNI, and the certificate must be valid for that name. An address is never sent as SNI (RFC 6066,
    // section 3); the certificate must be valid for that address.
    if (isIP(hostname) === 0) options.servername = hostname;
    if (tlsCa !== undefined) options.ca = tlsCa;
    const session = sessions.get(key);
    if (session !== undefined) options.session = session;
    const socket = connectTls(options);
    socket.on('session', (latest: Buffer) => sessions.keep(key, latest));
    socket.on('secureConnect', this.#onSecureConnect);
    return socket;
  }

  #onread() {
    return {
      buffer: READ_BUFFER,
      callback: (length: number): boolean => {
        this.#owner.onRead(length);
        // To stop reading, the connection calls socket.pause(). If this returned false, reads would stop but the socket would
        // not know.
        return true;
      },
    };
  }

  readonly #onConnect = (): void => {
    this.#tcpConnected = true;
    if (this.#origin.protocol === 'http:') this.#succeed();
  };

  readonly #onSecureConnect = (): void => this.#succeed();

  readonly #onError = (cause: Error): void => this.#attemptFailed(cause);

  readonly #onClose = (): void => this.#attemptFailed(new Error('closed during the handshake'));

  #attemptFailed(cause: Error): void {
    const { key, hostHeader } = this.#origin;
    this.#drop();
    if (this.#tcpConnected) {
      this.#tools.sessions.forget(key);
      this.#fail({ code: tlsFault(cause), message: `TLS with ${hostHeader} failed: ${cause.message}`, cause });
    } else if (this.#next < this.#addresses.length) {
      this.#tryNext();
    } else {
      this.#fail({ code: 'connect_failed', message: `${hostHeader} cannot be reached: ${cause.message}`, cause });
    }
  }

  #succeed(): void {
    const socket = this.#attempt as Socket;
    this.#release(socket);
    this.#over = true;
    this.#owner.onConnected(socket);
  }

  #fail(failure: Failure): void {
    this.#over = true;
    this.#owner.onConnectFailed(failure);
  }

  #drop(): void {
    const socket = this.#attempt;
    if (socket === null) return;
    this.#release(socket);
    // A socket may report an error after it was destroyed; without a listener that would end the process.
    socket.on('error', () => {});
    socket.destroy();
  }

  #release(socket: Socket): void {
    this.#attempt = null;
    socket.off('error', this.#onError);
    socket.off('close', this.#onClose);
    socket.off('connect', this.#onConnect);
    socket.off('secureConnect', this.#onSecureConnect);
  }
}

/** The codes of OpenSSL and Node for certificate faults that a provider can fix. */
const TLS_FAULTS: Readonly<Record<string, UpstreamErrorCode>> = {
  CERT_HAS_EXPIRED: 'tls_expired',
  CERT_NOT_YET_VALID: 'tls_expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'tls_wrong_name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls_untrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls_untrusted',
  UNABLE_TO_GET_ISSUER_CERT: 'tls_untrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'tls_untrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls_untrusted',
};

const tlsFault = (cause: NodeJS.ErrnoException): UpstreamErrorCode => TLS_FAULTS[cause.code ?? ''] ?? 'tls_failed';
