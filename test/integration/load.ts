// Callers that call without a pause, each over a connection of its own that it keeps for as long as it may.

import { Agent, get } from 'node:http';
import { authorization, type Key } from './market-client.ts';

export class Load {
  /** Usage ids of the calls that were answered whole, with 200. */
  readonly answered: string[] = [];
  /** What became of all others. */
  readonly failures: string[] = [];
  readonly #url: string;
  readonly #callers: Promise<void>[];
  #stopped = false;

  /** @param keys one for each caller, since a key may not call more than 300 times a minute */
  constructor(url: string, keys: readonly Key[]) {
    this.#url = url;
    this.#callers = keys.map((key) => this.#run(key));
  }

  /** Lets every caller finish its call. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#callers);
  }

  async #run(key: Key): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!this.#stopped) await this.#call(key, agent);
    agent.destroy();
  }

  #call(key: Key, agent: Agent): Promise<void> {
    return new Promise((resolve) => {
      const failed = (what: string): void => {
        this.failures.push(what);
        resolve();
      };
      const request = get(this.#url, { agent, headers: { Authorization: authorization(key) } }, (response) => {
        response.resume();
        response.on('error', (error) => failed(`cut: ${error.message}`));
        response.on('end', () => {
          if (response.statusCode !== 200) return failed(String(response.statusCode));
          this.answered.push(String(response.headers['x-acf-usage-id']));
          resolve();
        });
      });
      request.on('error', (error) => failed(error.message));
    });
  }
}
