// A caller that sends exactly what a test tells it to, and reads responses as strictly as RFC 9112 allows.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { authorization, type Key } from './marketplace.ts';

export type RawResponse = {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
  /** The first value of a header; upper and lower case of its name do not matter. */
  get(name: string): string | null;
  all(name: string): string[];
  json<T>(): T;
};

type Head = Omit<RawResponse, 'body' | 'json'> & { readonly length: number };

/** `GET /path` with the headers given as lines; `Host` and, with a key, `Authorization` are added. */
export function requestText(
  line: string,
  options: { readonly key?: Key | undefined; readonly headers?: readonly string[]; readonly body?: string } = {},
): string {
  const lines = [`${line} HTTP/1.1`, 'Host: gateway.test'];
  if (options.key !== undefined) lines.push(`Authorization: ${authorization(options.key)}`);
  lines.push(...(options.headers ?? []));
  if (options.body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(options.body, 'latin1')}`);
  return `${lines.join('\r\n')}\r\n\r\n${options.body ?? ''}`;
}

export class RawCaller {
  readonly socket: Socket;
  #pieces: Buffer[] = [];
  #length = 0;
  /** The gateway has ended or reset the connection. */
  gone = false;
  #changed: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.#pieces.push(chunk);
      this.#length += chunk.length;
      this.#changed();
    });
    for (const end of ['end', 'error', 'close']) {
      socket.on(end, () => {
        this.gone = true;
        this.#changed();
      });
    }
  }

  /** Received bytes that were not read yet. */
  get received(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0] as Buffer;
  }

  set received(rest: Buffer) {
    this.#pieces = [rest];
    this.#length = rest.length;
  }

  static async connect(baseUrl: string): Promise<RawCaller> {
    const { hostname, port } = new URL(baseUrl);
    const caller = new RawCaller(connect(Number(port), hostname));
    await once(caller.socket, 'connect');
    return caller;
  }

  /** Sends text as latin1. */
  send(text: string | Uint8Array): void {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text);
  }

  /** Sends a request and reads its response. */
  exchange(line: string, options: Parameters<typeof requestText>[1] = {}): Promise<RawResponse> {
    this.send(requestText(line, options));
    return this.response(line.startsWith('HEAD '));
  }

  /** Waits until the condition is met. Throws if the connection ends first. */
  until(condition: (received: Buffer) => boolean): Promise<void> {
    return this.#until(() => condition(this.received));
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.gone) throw new Error(`the connection ended after: ${this.received.toString('latin1').slice(0, 2000)}`);
      await this.#change();
    }
  }

  /** Reads and removes one complete response. Throws if it is cut, malformed, or framed in two ways. */
  async response(isHead = false): Promise<RawResponse> {
    const head = await this.head();
    const length = head.all('content-length');
    const chunked = head.all('transfer-encoding');
    if (length.length + chunked.length > 1) throw new Error(`framed twice: ${JSON.stringify(head.headers)}`);
    const body = await this.#body(head, isHead, length[0], chunked[0]);
    return { ...head, body, json: <T>() => JSON.parse(body.toString('utf8')) as T };
  }

  /** Reads and removes the final response head. */
  async head(): Promise<Head> {
    for (;;) {
      await this.until((received) => received.includes('\r\n\r\n'));
      const head = parseHead(this.received);
      this.received = this.received.subarray(head.length);
      if (head.status >= 200) return head;
    }
  }

  /** Waits for the end of the connection. @returns the bytes that came before it */
  async end(): Promise<Buffer> {
    while (!this.gone) await this.#change();
    return this.received;
  }

  /** Closes the connection without notice. */
  destroy(): void {
    this.socket.destroy();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve;
    });
  }

  async #body(head: Head, isHead: boolean, length: string | undefined, coding: string | undefined): Promise<Buffer> {
    if (isHead || head.status === 204 || head.status === 304) return Buffer.alloc(0);
    if (coding !== undefined) return this.#chunkedBody();
    if (length === undefined) return this.end();
    await this.#until(() => this.#length >= Number(length));
    return this.#take(Number(length));
  }

  async #chunkedBody(): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (;;) {
      await this.until((received) => received.includes('\r\n'));
      const size = Number.parseInt(this.#take(this.received.indexOf('\r\n') + 2).toString('latin1'), 16);
      await this.#until(() => this.#length >= size + 2);
      parts.push(this.#take(size));
      if (this.#take(2).toString('latin1') !== '\r\n') throw new Error('a chunk does not end where it says');
      if (size === 0) return Buffer.concat(parts);
    }
  }

  #take(length: number): Buffer {
    const taken = this.received.subarray(0, length);
    this.received = this.received.subarray(length);
    return taken;
  }
}

function parseHead(bytes: Buffer): Head {
  const length = bytes.indexOf('\r\n\r\n') + 4;
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, length - 4).split('\r\n');
  const match = /^HTTP\/1\.1 (\d{3}) ?/.exec(statusLine);
  if (match === null) throw new Error(`not a status line: ${statusLine}`);
  const headers = lines.map((line): [string, string] => {
    const field = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+): ?(.*)$/s.exec(line);
    if (field === null) throw new Error(`not a header: ${line}`);
    return [field[1] as string, field[2] as string];
  });
  const all = (name: string): string[] =>
    headers.filter(([known]) => known.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  return { status: Number(match[1]), headers, all, get: (name) => all(name)[0] ?? null, length };
}
