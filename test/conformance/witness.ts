// A service that believes nobody: every byte that reaches it is kept, and Node's own strict server (llhttp) says what it
// takes those bytes for.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { IN_CHUNKS } from './callers/case.ts';

/** One request as llhttp read it, body included. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly usageId: string;
  /** Flat [name, value, …] as they came. */
  readonly headers: readonly string[];
  readonly body: string;
};

/** A gateway that gives an upload up ends the connection: no fault of what was sent. */
const CUT = ['ECONNRESET', 'HPE_INVALID_EOF_STATE'];

export class Witness {
  readonly url: string;
  /** What came over each connection, in order. */
  readonly connections: Buffer[][];
  /** Whole requests, in order of their end. */
  readonly seen: Seen[];
  /** Heads that llhttp took, whether or not their body came. */
  readonly heads: string[];
  /** What llhttp refused. */
  readonly faults: string[];
  readonly #close: () => Promise<void>;

  private constructor(parts: Pick<Witness, 'url' | 'connections' | 'seen' | 'heads' | 'faults' | 'close'>) {
    this.url = parts.url;
    this.connections = parts.connections;
    this.seen = parts.seen;
    this.heads = parts.heads;
    this.faults = parts.faults;
    this.#close = parts.close;
  }

  static async open(): Promise<Witness> {
    const connections: Buffer[][] = [];
    const seen: Seen[] = [];
    const heads: string[] = [];
    const faults: string[] = [];
    const server = createServer({ insecureHTTPParser: false, maxHeaderSize: 65_536 }, (request, response) => {
      heads.push(`${request.method} ${request.url}`);
      void take(request, response, seen);
    });
    server.on('connection', (socket) => {
      const bytes: Buffer[] = [];
      connections.push(bytes);
      socket.on('data', (chunk: Buffer) => bytes.push(chunk));
    });
    server.on('clientError', (error, socket) => {
      const code = (error as NodeJS.ErrnoException).code ?? '';
      if (!CUT.includes(code)) faults.push(`${code} ${error.message}`);
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const close = (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return new Witness({ url, connections, seen, heads, faults, close });
  }

  /** The whole requests whose target begins so. */
  under(prefix: string): Seen[] {
    return this.seen.filter(({ url }) => url.startsWith(prefix));
  }

  close(): Promise<void> {
    return this.#close();
  }
}

async function take(request: IncomingMessage, response: ServerResponse, seen: Seen[]): Promise<void> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer);
  } catch {
    // Cut within its body: it stays a head without a request.
    return;
  }
  seen.push({
    method: request.method ?? '',
    url: request.url ?? '',
    usageId: String(request.headers['x-acf-usage-id'] ?? ''),
    headers: request.rawHeaders,
    body: Buffer.concat(chunks).toString('latin1'),
  });
  if (request.url?.endsWith(IN_CHUNKS)) response.write('also ');
  response.end('seen');
}
