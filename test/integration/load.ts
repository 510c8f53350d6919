// Callers that call without a pause, each over a connection of its own that it keeps for as long as it may.

import { Agent, get } from 'node:http';
import { seedBuyers } from '../../src/accounts/seed-buyers.ts';
import type { Sql } from '../../src/platform/postgres.ts';
import { authorization, type Key } from './market-client.ts';

export class Load {
  /** Usage ids of the calls that were answered whole, with 200. */
  readonly answered: string[] = [];
  /** What became of all others. */
  readonly failures: string[] = [];
  readonly #url: string;
  readonly #callers: Promise<void>[];
  readonly #endsAtFailure: boolean;
  #stopped = false;

  /**
   * @param keys those of each caller, used in turn: a key may not call more than 300 times a minute
   * @param options.endsAtFailure a caller whose call failed makes no more: for gateways that do not come back
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
    }
    agent.destroy();
  }

  #call(key: Key, agent: Agent): Promise<boolean> {
    return new Promise((resolve) => {
      const failed = (what: string): void => {
        this.failures.push(what);
        resolve(false);
      };
      const request = get(this.#url, { agent, headers: { Authorization: authorization(key) } }, (response) => {
        response.resume();
        response.on('error', (error) => failed(`cut: ${error.message}`));
        response.on('end', () => {
          if (response.statusCode !== 200) return failed(String(response.statusCode));
          this.answered.push(String(response.headers['x-acf-usage-id']));
          resolve(true);
        });
      });
      request.on('error', (error) => failed(error.message));
    });
  }
}

const KEY_LIMIT = 300;
let seeded = 0;

/** Keys for callers without a pause, each of an account of its own: so many for each caller, used in turn. */
export async function keysForFullLoad(
  sql: Sql,
  { callers, keysEach, balanceMicros }: { callers: number; keysEach: number; balanceMicros: number },
): Promise<Key[][]> {
  const batch = { buyers: callers * keysEach, balanceMicros, rateLimit: KEY_LIMIT, firstNumber: 1 };
  const buyers = await seedBuyers(sql, { ...batch, label: `full load ${seeded++}` });
  const keys = buyers.map(({ accountId, keyId, secret }) => ({ account_id: accountId, key_id: keyId, secret }));
  return Array.from({ length: callers }, (_, i) => keys.slice(i * keysEach, (i + 1) * keysEach));
}
