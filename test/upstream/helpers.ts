import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  Destination,
  parseEndpoint,
  type ResponseHead,
  UpstreamClient,
  type UpstreamError,
  type UpstreamHandler,
  type UpstreamOptions,
  type UpstreamRequest,
} from '../../src/upstream/index.ts';

/** The server's end of one connection, with everything it has received. */
export class Peer {
  readonly socket: Socket;
  received = '';
  /** Whether the client has closed or reset its end. */
  isGone = false;
  #changed: () => void = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.received += chunk.toString('latin1');
      this.#changed();
    });
    const gone = () => {
      this.isGone = true;
      this.#changed();
    };
    socket.on('end', gone);
    socket.on('error', gone);
    socket.on('close', gone);
  }

  send(text: string | Buffer): void {
    this.socket.write(text as string, 'latin1');
  }

  /** Waits until the octets received since the last `take` satisfy the condition. */
  async until(condition: (received: string) => boolean): Promise<void> {
    while (!condition(this.received)) {
      if (this.isGone) throw new Error(`connection closed after: ${this.received}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** Waits for a request without a body, returns it, and removes it from `received`. */
  async takeRequest(): Promise<string> {
    await this.until((received) => received.includes('\r\n\r\n'));
    const end = this.received.indexOf('\r\n\r\n') + 4;
    const request = this.received.slice(0, end);
    this.received = this.received.slice(end);
    return request;
  }

  /** Waits until the client has closed its end. */
  async gone(): Promise<void> {
    this.socket.resume();
    await eventually(() => this.isGone);
  }
}

export type RawServer = {
  readonly port: number;
  readonly url: string;
  readonly peers: Peer[];
  /** Waits for the connection with this number; the first has 0. */
  peer(index: number): Promise<Peer>;
  close(): Promise<void>;
};

/** A TCP server that sends exactly the octets that a test tells it to. */
export async function rawServer(onPeer: (peer: Peer, index: number) => unknown = () => {}): Promise<RawServer> {
  const peers: Peer[] = [];
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    const peer = new Peer(socket);
    peers.push(peer);
    server.emit('peer');
    // The script of a peer fails when its connection goes away. Many tests want just that.
    void Promise.resolve(onPeer(peer, peers.length - 1)).catch(() => {});
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    peers,
    async peer(index) {
      while (peers[index] === undefined) await once(server, 'peer');
      return peers[index] as Peer;
    },
    async close() {
      for (const { socket } of peers) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

export function newClient(options: Partial<UpstreamOptions> = {}): UpstreamClient {
  return new UpstreamClient({
    allowCidrs: ['127.0.0.0/8'],
    maxConnectionsPerOrigin: 8,
    maxWaitingPerOrigin: 8,
    maxWaitMs: 5_000,
    connectTimeoutMs: 5_000,
    keepAliveMs: 5_000,
    maxHeadBytes: 16_384,
    sweepIntervalMs: 10,
    ...options,
  });
}

export type RequestOptions = Partial<UpstreamRequest>;

/** Starts a call and records its callbacks. */
export class Exchange implements UpstreamHandler {
  readonly call;
  readonly events: string[] = [];
  readonly chunks: Buffer[] = [];
  head: ResponseHead | null = null;
  trailers: readonly string[] | null = null;
  error: UpstreamError | null = null;
  onChunk: (chunk: Buffer) => void = (chunk) => this.chunks.push(Buffer.from(chunk));
  readonly ended = deferred();
  readonly headed = deferred();
  writable = deferred();

  constructor(client: UpstreamClient, url: string, options: RequestOptions = {}) {
    this.call = client.dispatch(
      {
        destination: new Destination(parseEndpoint(url).origin),
        account: 'a',
        method: 'GET',
        path: '/',
        headerLines: '',
        bodyLength: 0,
        headTimeoutMs: 20_000,
        idleBodyTimeoutMs: 20_000,
        ...options,
      },
      this,
    );
  }

  get body(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }

  /** Waits for the end of the call. @returns the error's code, or the status */
  async outcome(): Promise<string | number> {
    await this.ended.promise;
    return this.error?.code ?? (this.head as ResponseHead).status;
  }

  onHead(head: ResponseHead): void {
    this.events.push('head');
    this.head = head;
    this.headed.resolve();
  }

  onData(chunk: Buffer): void {
    this.events.push('data');
    this.onChunk(chunk);
  }

  onEnd(trailers: readonly string[]): void {
    this.trailers = trailers;
    this.events.push('end');
    this.headed.resolve();
    this.ended.resolve();
  }

  onError(error: UpstreamError): void {
    this.events.push('error');
    this.error = error;
    this.headed.resolve();
    this.ended.resolve();
  }

  onWritable(): void {
    this.events.push('writable');
    this.writable.resolve();
    this.writable = deferred();
  }
}

export function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

/** Waits for a condition that has no event of its own. */
export async function eventually(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never: ${condition}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A body without repetition, so that lost, doubled or swapped bytes are noticed. */
export function patternBytes(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}
