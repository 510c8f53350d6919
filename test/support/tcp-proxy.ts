import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy between a client and a store, for what a store cannot be asked to do: answer into the void, refuse, or
 * take everything and say nothing.
 */
export class TcpProxy {
  readonly #server: Server;
  #targetPort: number;
  readonly #pairs = new Set<readonly [client: Socket, target: Socket]>();
  #mode: 'pass' | 'refuse' | 'swallow requests' | 'swallow replies' | 'forget' | 'hold' = 'pass';
  #port = 0;
  /** How long each reply takes more. */
  delayMs = 0;
  /** Bytes of replies that were swallowed. */
  swallowed = 0;
  /** Connections that were forgotten. */
  forgotten = 0;
  /** Connections taken and led on. */
  accepted = 0;
  /** Connections refused. */
  refused = 0;

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async open(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    proxy.#port = (proxy.#server.address() as { port: number }).port;
    return proxy;
  }

  /** Another store is behind it from now on; connections that are open stay with the one they have. */
  leadTo(targetPort: number): void {
    this.#targetPort = targetPort;
  }

  /** The address of the store behind it, with the proxy's port. */
  through(url: string): string {
    const through = new URL(url);
    through.hostname = '127.0.0.1';
    through.port = String(this.#port);
    return through.href;
  }

  /**
   * Connections stay as they are; what comes from now on is treated so. 'forget' is a firewall that lost its table, or an
   * address that moved: a connection that says anything meanwhile is dead for ever, and nobody says so. 'hold' is a network
   * or a store that stands still: what is said meanwhile arrives afterwards.
   */
  set(mode: 'pass' | 'swallow requests' | 'swallow replies' | 'forget' | 'hold'): void {
    this.#mode = mode;
    for (const [client] of this.#pairs) this.#holdOrResume(client);
  }

  /** Cuts all connections, and new ones at once, until `set`. */
  refuse(): void {
    this.#mode = 'refuse';
    this.cut();
  }

  #holdOrResume(client: Socket): void {
    if (this.#mode === 'hold') client.pause();
    else client.resume();
  }

  cut(): void {
    for (const [client, target] of this.#pairs) {
      client.destroy();
      target.destroy();
    }
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(client: Socket): void {
    if (this.#mode === 'refuse') {
      this.refused++;
      client.destroy();
      return;
    }
    this.accepted++;
    const target = connect(this.#targetPort, '127.0.0.1');
    const pair = [client, target] as const;
    this.#pairs.add(pair);
    // One timer at a time: of several that are late, Node may run a later one first.
    const replies: { readonly chunk: Buffer; readonly dueAt: number }[] = [];
    const sendDue = (): void => {
      while (replies[0] !== undefined && replies[0].dueAt <= performance.now())
        client.write(replies.shift()?.chunk ?? '');
      if (replies[0] !== undefined) setTimeout(sendDue, replies[0].dueAt - performance.now());
    };
    const reply = (chunk: Buffer): void => {
      replies.push({ chunk, dueAt: performance.now() + this.delayMs });
      if (replies.length === 1) sendDue();
    };
    let forgotten = false;
    client.on('data', (chunk) => {
      if (this.#mode === 'forget' && !forgotten) {
        forgotten = true;
        this.forgotten++;
      }
      if (!forgotten && this.#mode !== 'swallow requests') target.write(chunk);
    });
    this.#holdOrResume(client);
    target.on('data', (chunk) => {
      if (this.#mode === 'swallow replies') this.swallowed += chunk.length;
      else reply(chunk);
    });
    for (const socket of pair) {
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#pairs.delete(pair);
        client.destroy();
        target.destroy();
      });
    }
  }
}
