// A service that trusts nobody: it records every byte that reaches it, and how Node's own strict server (llhttp) reads those
// bytes.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { IN_CHUNKS } from './callers/case.ts';

/** One request as llhttp read it, including its body. */
export type Seen = {
  readonly method: string;
  readonly url: string;
  readonly usageId: string;
  /** Flat [name, value, …], spelled and ordered as they arrived. */
  readonly headers: readonly string[];
  readonly body: string;
};

/** Errors of connections that ended within a request. The gateway ends them when it gives up an upload: no byte was wrong. */
const CUT = ['ECONNRESET', 'HPE_INVALID_EOF_STATE'];

export class Witness {
  readonly url: string;
  /** The bytes that arrived on each connection, in order. */
  readonly connections: Buffer[][];
  /** Whole requests, in the order in which they ended. */
  readonly seen: Seen[];
  /** Heads that llhttp accepted, whether or not their body arrived. */
  readonly heads: string[];
  /** Errors with which llhttp refused what arrived. */
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

  /** The whole requests whose target begins with the prefix. */
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
    // The request was cut within its body: only its head is recorded.
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
