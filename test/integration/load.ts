// Callers that call without a pause, unless the test wants one, each over its own kept-alive connection.

import { Agent, type ClientRequest, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { seedBuyers } from '../../src/accounts/seed-buyers.ts';
import type { Sql } from '../../src/platform/postgres.ts';
import { unfenced } from '../support/unfenced.ts';
import { authorization, type Key } from './market-client.ts';

/**
 * How far a call without a 200 got.
 *
 *   not connected ──► not sent ──► no answer ──► cut ──► status
 *
 * `no answer`: the request was handed to the kernel, and the connection ended before the first byte of a response. The gateway
 * may have closed the connection as idle while the request was on its way (RFC 9112 §9.3.1), or have reset it before accepting
 * it, or have taken the call and lost it. Only the gateway's records tell these apart.
 */
export type Phase = 'not connected' | 'not sent' | 'no answer' | 'cut' | 'status';
type Failure = {
  readonly phase: Phase;
  readonly reason: string;
  /** The call used a connection on which no earlier call of this caller was answered. */
  readonly isFirstOfConnection: boolean;
  readonly accountId: string;
};

export class Load {
  /** Usage ids of the calls that were answered completely, with 200. */
  readonly answered: string[] = [];
  /** How far each of the other calls got. */
  readonly failures: Failure[] = [];
  /** How long each caller waits before its next call; 0: full load. */
  pauseMs = 0;
  readonly #url: string;
  readonly #callers: Promise<void>[];
  readonly #endsAtFailure: boolean;
  #stopped = false;

  /**
   * @param keys the keys of each caller, used in turn, because a key may not call more than 300 times a minute
   * @param options.endsAtFailure whether a caller stops after a failed call, for gateways that do not come back
   */
  constructor(
    url: string,
    keys: readonly (readonly Key[])[],
    { endsAtFailure = false }: { readonly endsAtFailure?: boolean } = {},
  ) {
    this.#url = url;
    this.#endsAtFailure = endsAtFailure;
    this.#callers = keys.map((itsKeys) => this.#run(itsKeys));
  }

  /** Lets every caller finish its call. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
  }

  async #run(keys: readonly Key[]): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; !this.#stopped; i++) {
      const isAnswered = await this.#call(keys[i % keys.length] as Key, agent);
      if (!isAnswered && this.#endsAtFailure) break;
      if (this.pauseMs > 0) await sleep(this.pauseMs);
    }
    agent.destroy();
  }

  #call(key: Key, agent: Agent): Promise<boolean> {
    return new Promise((resolve) => {
      const failed = (phase: Phase, reason: string): void => {
        this.failures.push({ phase, reason, isFirstOfConnection: !request.reusedSocket, accountId: key.account_id });
        resolve(false);
      };
      const request = get(this.#url, { agent, headers: { Authorization: authorization(key) } });
      const received = bytesReceived(request);
      let isAnswering = false;
      request.on('response', (response) => {
        isAnswering = true;
        response.resume();
        response.on('error', (error) => failed('cut', error.message));
        response.on('end', () => {
          if (response.statusCode !== 200) return failed('status', String(response.statusCode));
          this.answered.push(String(response.headers['x-acf-usage-id']));
          resolve(true);
        });
      });
      request.on('error', (error: NodeJS.ErrnoException) => {
        // Once there is a response, the response itself fails or completes.
        if (!isAnswering) failed(phaseOf(error, received()), error.message);
      });
    });
  }
}

/** @returns a function that tells how many bytes have come on the request's connection since the request got it */
function bytesReceived(request: ClientRequest): () => number {
  let received = (): number => 0;
  request.on('socket', (socket) => {
    const before = socket.bytesRead;
    received = () => socket.bytesRead - before;
  });
  return () => received();
}

function phaseOf({ syscall }: NodeJS.ErrnoException, received: number): Phase {
  if (received > 0) return 'cut';
  if (syscall === 'connect') return 'not connected';
  return syscall === 'write' ? 'not sent' : 'no answer';
}

const KEY_LIMIT = 300;
let seeded = 0;

/** Makes the keys of each caller, used in turn, so that it can call without a pause. Each caller has its own account. */
export async function keysForFullLoad(
  sql: Sql,
  { callers, keysEach, balanceMicros }: { callers: number; keysEach: number; balanceMicros: number },
): Promise<Key[][]> {
  const batch = { buyers: callers * keysEach, balanceMicros, rateLimit: KEY_LIMIT, firstNumber: 1 };
  const buyers = await seedBuyers(unfenced(sql), { ...batch, label: `full load ${seeded++}` });
  const keys = buyers.map(({ accountId, keyId, secret }) => ({ account_id: accountId, key_id: keyId, secret }));
  return Array.from({ length: callers }, (_, i) => keys.slice(i * keysEach, (i + 1) * keysEach));
}
