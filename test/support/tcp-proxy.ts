import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A TCP proxy between a client and a store. It makes faults that a store cannot be told to make: lost replies, refused
 * connections, requests that get no reply.
 */
export class TcpProxy {
  readonly #server: Server;
  #targetPort: number;
  readonly #pairs = new Set<readonly [client: Socket, target: Socket]>();
  #mode: 'pass' | 'refuse' | 'swallow requests' | 'swallow replies' | 'forget' | 'hold' = 'pass';
  #port = 0;
  /** Delay that is added to each reply. */
  delayMs = 0;
  /** Bytes of replies that were swallowed. */
  swallowed = 0;
  /** Connections that were forgotten. */
  forgotten = 0;
  /** Connections that were accepted and connected to the store. */
  accepted = 0;
  /** Connections that were refused. */
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

  /** Connects new connections to another store from now on. Open connections stay with theirs. */
  leadTo(targetPort: number): void {
    this.#targetPort = targetPort;
  }

  /** The URL of a store, changed so that it leads through this proxy. */
  through(url: string): string {
    const through = new URL(url);
    through.hostname = '127.0.0.1';
    through.port = String(this.#port);
    return through.href;
  }

  /**
   * Open connections stay open. What is sent from now on is treated as the mode says. 'forget' is a firewall that has lost its
   * table, or an address that has moved: a connection on which the client then sends anything is dead for good, and neither side is told.
   * 'hold' is a stalled network or store: what is sent meanwhile arrives afterwards.
   */
  set(mode: 'pass' | 'swallow requests' | 'swallow replies' | 'forget' | 'hold'): void {
    this.#mode = mode;
    for (const [client] of this.#pairs) this.#holdOrResume(client);
  }

  /** Cuts all connections, and each new one at once, until `set` is called. */
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
    // Only one timer at a time: if several timers are late, Node may run a later one first, and replies would change their order.
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
