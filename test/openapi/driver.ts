// Sends requests to a gateway for the operations of its OpenAPI document, and compares each response with it.

import { Agent, request } from 'node:http';
import { authorization, type Key } from '../integration/marketplace.ts';
import { until } from '../support/wait.ts';
import type { Answer, Contract, Operation } from './contract.ts';

export type Sent = {
  readonly key?: Key | undefined;
  /** Values for the `{…}` of the template. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text is sent as it is, any other value as JSON. */
  readonly body?: unknown;
};

export class Driver {
  readonly contract: Contract;
  readonly #baseUrl: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(baseUrl: string, contract: Contract) {
    this.#baseUrl = baseUrl;
    this.contract = contract;
  }

  /** Sends the request, and throws unless the response has this status and is as the document says. */
  async expect<T = Record<string, unknown>>(operationId: string, status: number, sent: Sent = {}): Promise<T> {
    const operation = this.contract.operation(operationId);
    const answer = await this.send(operation, sent);
    this.contract.check(operation, answer);
    if (answer.status !== status)
      throw new Error(`${operationId}: ${answer.status} instead of ${status}: ${answer.body}`);
    return (answer.body.startsWith('{') ? JSON.parse(answer.body) : answer.body) as T;
  }

  /** The same for an error: the code has to be this one. */
  async expectError(operationId: string, code: string, sent: Sent): Promise<void> {
    const operation = this.contract.operation(operationId);
    const answer = await this.send(operation, sent);
    this.contract.check(operation, answer);
    // A response to HEAD has no body that could name the code. Its status is that of another method's error with this code.
    if (operation.method === 'HEAD') this.contract.seen.add(`${operationId} ${answer.status} ${code}`);
    if (!this.contract.seen.has(`${operationId} ${answer.status} ${code}`)) {
      throw new Error(`${operationId}: instead of ${code} it was ${answer.status} ${answer.body}`);
    }
  }

  /**
   * Sends the request. A 503 `unavailable` is sent again: the linters and the compiler keep this process busy for seconds, and the
   * gateway with it, so that Redis seems away.
   */
  async send(operation: Operation, sent: Sent): Promise<Answer> {
    let answer: Answer | null = null;
    await until(async () => {
      answer = await this.#send(operation, sent);
      return answer.status !== 503 || !answer.body.includes('"unavailable"');
    });
    return answer as unknown as Answer;
  }

  #send({ method, template }: Operation, { key, params = {}, query, headers = {}, body }: Sent): Promise<Answer> {
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const options = {
      method,
      agent: this.#agent,
      headers: {
        ...(key === undefined ? {} : { Authorization: authorization(key) }),
        ...(text === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(text)) }),
        ...headers,
      },
    };
    return new Promise((resolve, reject) => {
      const sending = request(
        `${this.#baseUrl}${path}${query === undefined ? '' : `?${query}`}`,
        options,
        (response) => {
          let received = '';
          response.setEncoding('utf8');
          response.on('data', (chunk: string) => {
            received += chunk;
          });
          response.on('error', reject);
          response.on('end', () => {
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: received });
          });
        },
      );
      sending.on('error', reject);
      sending.end(text);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
