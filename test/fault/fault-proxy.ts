// A TCP proxy that does to a connection what networks and dying machines do. Bytes that it buffers in the mode 'buffer' are not
// lost but late, as with a network that comes back: a command may arrive long after its sender gave up, or even died.

import { connect, createServer, type Server, type Socket } from 'node:net';

/** What happens to bytes. `requests` go from the client to the target, `replies` back. */
export type LinkMode =
  | { readonly kind: 'pass' }
  /** New connections are reset, and existing ones are cut. */
  | { readonly kind: 'refuse' }
  /** Bytes are buffered until the mode changes. Connections stay open. */
  | { readonly kind: 'buffer'; readonly what: 'requests' | 'replies' | 'both' }
  /** Like `buffer` of both, but only for existing connections: bytes on new connections overtake the buffered ones. */
  | { readonly kind: 'strand' }
  /** Every piece arrives this much later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The next reply is cut after this fraction of its first piece. Then everything passes again. */
  | { readonly kind: 'cut reply'; readonly part: number };

type Piece = { readonly bytes: Buffer | null; readonly dueAt: number };

/** One direction of one connection. A piece without bytes marks the end of that direction. */
class Flow {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #isReply: boolean;
  /** The address of the client. */
  readonly #source: string;
  readonly #proxy: FaultProxy;
  readonly #queue: Piece[] = [];
  #timer: NodeJS.Timeout | null = null;
  isStranded = false;

  constructor(proxy: FaultProxy, from: Socket, to: Socket, { isReply, source }: { isReply: boolean; source: string }) {
    this.#proxy = proxy;
    this.#source = source;
    this.#from = from;
    this.#to = to;
    this.#isReply = isReply;
    from.on('data', (bytes) => this.#take(bytes));
    from.on('end', () => this.#take(null));
    // Buffered bytes may arrive after their sender has died. The receiver learns of the death after the last byte.
    from.on('error', () => this.#take(null));
    to.on('drain', () => from.resume());
    to.on('connect', () => this.pump());
  }

  #take(bytes: Buffer | null): void {
    this.#queue.push({ bytes, dueAt: performance.now() + this.#proxy.delayMs });
    this.pump();
    if (this.#queue.length > 64) this.#from.pause();
  }

  /** Passes on the pieces that are due. */
  pump(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#queue.length > 0 && !this.#isBuffered) {
      const [piece] = this.#queue as [Piece];
      const waitMs = piece.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.pump(), waitMs);
        return;
      }
      this.#queue.shift();
      this.#pass(piece.bytes);
    }
    if (this.#queue.length === 0 && !this.#to.writableNeedDrain) this.#from.resume();
  }

  get #isBuffered(): boolean {
    return (
      this.isStranded || this.#proxy.buffers(this.#isReply) || this.#proxy.isCutOff(this.#source) || this.#to.connecting
    );
  }

  #pass(bytes: Buffer | null): void {
    if (this.#to.destroyed) return;
    const part = this.#isReply && bytes !== null ? this.#proxy.takeCut() : null;
    if (bytes === null) {
      this.#to.end();
    } else if (part !== null) {
      this.#to.write(bytes.subarray(0, Math.floor(bytes.length * part)), () => {
        reset(this.#to);
        reset(this.#from);
      });
    } else if (!this.#to.write(bytes)) {
      this.#from.pause();
    }
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#queue.length = 0;
  }
}

type Connection = {
  readonly client: Socket;
  readonly target: Socket;
  readonly source: string;
  readonly flows: readonly [Flow, Flow];
};

export class FaultProxy {
  readonly #server: Server;
  #targetPort: number;
  readonly #connections = new Set<Connection>();
  #mode: LinkMode = { kind: 'pass' };
  #cut: number | null = null;
  #cutOff: (source: string) => boolean = () => false;
  port = 0;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
  }

  static async open(targetPort: number): Promise<FaultProxy> {
    const proxy = new FaultProxy(targetPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    proxy.port = (proxy.#server.address() as { port: number }).port;
    return proxy;
  }

  /** The target's URL with the proxy's port instead of its own. */
  through(url: string): string {
    const through = new URL(url);
    through.hostname = '127.0.0.1';
    through.port = String(this.port);
    return through.href;
  }

  /** New connections lead to another port. Those that are there stay as they are. */
  retarget(port: number): void {
    this.#targetPort = port;
  }

  set(mode: LinkMode): void {
    this.#mode = mode;
    this.#cut = mode.kind === 'cut reply' ? mode.part : null;
    if (mode.kind === 'refuse') this.reset();
    for (const flow of Array.from(this.#connections).flatMap(({ flows }) => flows)) {
      flow.isStranded = mode.kind === 'strand';
      flow.pump();
    }
  }

  /** Clients at these addresses are silent and hear nothing from now on: a partition. Their bytes are buffered. */
  cutOff(isCutOff: (source: string) => boolean): void {
    this.#cutOff = isCutOff;
    for (const flow of Array.from(this.#connections).flatMap(({ flows }) => flows)) flow.pump();
  }

  isCutOff(source: string): boolean {
    return this.#cutOff(source);
  }

  /** Cuts all existing connections, or those of some clients. Buffered bytes are lost. */
  reset(isMeant: (source: string) => boolean = () => true): void {
    for (const { client, target, source, flows } of this.#connections) {
      if (!isMeant(source)) continue;
      for (const flow of flows) flow.stop();
      reset(client);
      reset(target);
    }
  }

  async close(): Promise<void> {
    this.reset();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  buffers(isReply: boolean): boolean {
    if (this.#mode.kind !== 'buffer') return false;
    return this.#mode.what === 'both' || this.#mode.what === (isReply ? 'replies' : 'requests');
  }

  get delayMs(): number {
    return this.#mode.kind === 'delay' ? this.#mode.ms : 0;
  }

  /** @returns the fraction of this reply that passes before the connection is cut; null: the whole reply passes */
  takeCut(): number | null {
    const part = this.#cut;
    this.#cut = null;
    return part;
  }

  #accept(client: Socket): void {
    if (this.#mode.kind === 'refuse') {
      reset(client);
      return;
    }
    const target = connect({ port: this.#targetPort, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    const source = client.remoteAddress ?? '';
    const flows = [
      new Flow(this, client, target, { isReply: false, source }),
      new Flow(this, target, client, { isReply: true, source }),
    ] as const;
    const connection = { client, target, source, flows };
    this.#connections.add(connection);
    const closed = (): void => {
      if (client.destroyed && target.destroyed) this.#connections.delete(connection);
    };
    client.on('close', closed);
    target.on('close', closed);
    // Nothing listens at the target. The client must learn that in every mode, as it would from the kernel.
    target.on('error', () => {
      if (target.connecting || target.bytesRead === 0) reset(client);
    });
  }
}

/** Sends a RST. Node sends a FIN before it, so the other side may see either. */
function reset(socket: Socket): void {
  if (!socket.destroyed) socket.resetAndDestroy();
}
