// The accounts and listings of the schedules, and the requests other than calls. Each request opens its own connection, because
// a kept one may lead to a worker that was killed since.

import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { authorization, found, type Key, MarketClient } from '../integration/market-client.ts';
import { until } from '../support/wait.ts';
import type { PlannedChange } from './changes.ts';
import type { Plan } from './plan.ts';
import type { Stack } from './stack.ts';
import { OWN_RATE_LIMIT, type PlannedKey, type PlannedTree } from './trees.ts';
import { CALLERS_CREDENTIAL } from './wishes.ts';

const REQUEST_MS = 2_000;
const RETRY_MS = 50;
const FREE_CALLS = 5;
/** So few that they are used up in most schedules. */
const FEW_FREE_CALLS = 2;
const OWN_CREDENTIALS = { upstream_headers: { 'X-Key': 'a secret' }, forward_headers: [CALLERS_CREDENTIAL] };

export type Listing = {
  readonly id: string;
  readonly priceMicros: number;
  readonly freeCalls: number;
  /** Null: a fixed price. */
  readonly maxMicros: number | null;
  /** It adds credentials of its own, and forwards those of callers who ask for that. */
  readonly hasCredentials: boolean;
  readonly isMcp: boolean;
};

/** A key below that of a buyer. */
export type Child = {
  readonly key: Key;
  readonly budget: PlannedKey['budget'];
  readonly rateLimit: number;
  /** The keys between the buyer's and this one, from the top down. */
  readonly above: readonly Child[];
  /** What was changed of it under way. */
  change: Change | null;
};

/** When a change was sent first, and when it was confirmed. */
export type Change = Pick<PlannedChange, 'micros'> & { readonly sentMs: number; doneMs: number };

type Answer = { readonly status: number; readonly text: string };

/** A buyer of one schedule, and the credits that came in for it. */
export type Buyer = { readonly key: Key; readonly children: readonly Child[]; creditedMicros: number };

export class Market extends MarketClient {
  readonly #stack: Stack;
  listings: readonly Listing[] = [];

  private constructor(stack: Stack, founders: Awaited<ReturnType<typeof found>>) {
    super({ ...founders, baseUrl: stack.gatewayUrl, stores: stack.stores });
    this.#stack = stack;
  }

  static async open(stack: Stack): Promise<Market> {
    const market = new Market(stack, await found(stack.gatewayUrl));
    market.listings = await Promise.all([
      market.#list({ priceMicros: 1_000 }),
      market.#list({ priceMicros: 2_500, freeCalls: FREE_CALLS }),
      market.#list({ priceMicros: 7 }),
      market.#list({ priceMicros: 0 }),
      // Priced by use.
      market.#list({ priceMicros: 500, maxMicros: 5_000 }),
      market.#list({ priceMicros: 0, freeCalls: FREE_CALLS, maxMicros: 4_000 }),
      market.#list({ priceMicros: 1_500, freeCalls: FEW_FREE_CALLS, hasCredentials: true }),
      market.#list({ priceMicros: 300, maxMicros: 2_000, hasCredentials: true }),
      market.#list({ priceMicros: 900, freeCalls: FEW_FREE_CALLS, isMcp: true }),
    ]);
    return market;
  }

  async #list(wanted: Pick<Listing, 'priceMicros'> & Partial<Listing>): Promise<Listing> {
    const listing = { freeCalls: 0, maxMicros: null, hasCredentials: false, isMcp: false, ...wanted };
    const endpoint = this.#stack.link('gateway-service').through('http://127.0.0.1/').replace(/\/$/, '');
    const path = await this.service({
      endpoint,
      price: listing.priceMicros / 1e6,
      ...(listing.freeCalls === 0 ? {} : { free_calls: listing.freeCalls }),
      ...(listing.maxMicros === null ? {} : { max_price: listing.maxMicros / 1e6 }),
      ...(listing.hasCredentials ? OWN_CREDENTIALS : {}),
      ...(listing.isMcp ? { protocol: 'mcp' } : {}),
    });
    return { ...listing, id: path.split('/').at(-1) as string };
  }

  /**
   * Makes fresh accounts with a first credit. Their wallets are not loaded before their first calls.
   *
   * @param isWanted  whether an account may be that buyer; if not, another one is made
   */
  async buyers(plan: Plan, isWanted: (accountId: string, buyer: number) => boolean = () => true): Promise<Buyer[]> {
    return Promise.all(
      plan.creditsMicros.map(async (micros, i) => {
        let key: Key;
        do key = await this.#account(`seed ${plan.seed}`);
        while (!isWanted(key.account_id, i));
        // Changed in Postgres before any gateway knows the key. The API would use up the admin's rate limit, needed for credits.
        await this.stores.sql`UPDATE api_keys SET rate_limit = ${OWN_RATE_LIMIT} WHERE key_id = ${key.key_id}`;
        const children = await this.#grow(key, plan.trees[i] as PlannedTree);
        const buyer: Buyer = { key, children, creditedMicros: 0 };
        await this.creditUntilDone(buyer, micros, `first ${buyer.key.key_id} ${i}`);
        return buyer;
      }),
    );
  }

  #account(owner: string): Promise<Key> {
    return this.#newKey({ body: { owner_id: owner, role: 'buyer' } });
  }

  async #grow(root: Key, tree: PlannedTree): Promise<Child[]> {
    const children: Child[] = [];
    for (const { parent, budget, rateLimit } of tree) {
      const above = parent === null ? null : (children[parent] as Child);
      const its = budget === null ? {} : { budget: { amount: budget.micros / 1e6, period: budget.period } };
      const made = await this.#newKey({ key: above?.key ?? root, body: { ...its, rate_limit: rateLimit } });
      const key = { ...made, account_id: root.account_id };
      children.push({ key, budget, rateLimit, above: above === null ? [] : [...above.above, above], change: null });
    }
    return children;
  }

  /** Before the load: a store may have been away for a moment, or silent on a busy machine. A key without an answer stays unused. */
  #newKey(request: { readonly key?: Key; readonly body: object }): Promise<Key> {
    return until(async () => {
      const { status, text } = await this.#send('POST', '/api/v1/keys', request);
      if (status === 201) return JSON.parse(text) as Key;
      if (status !== 0 && status !== 503) throw new Error(`POST /keys: ${status} ${text}`);
      await sleep(RETRY_MS);
      return false;
    });
  }

  /** Sends a credit until it is confirmed. Its reference makes it count once. */
  async creditUntilDone(buyer: Buyer, micros: number, reference: string): Promise<void> {
    const body = { account_id: buyer.key.account_id, amount: micros / 1e6, reference };
    await this.#sendUntilDone('/api/v1/admin/credits', body, []);
    buyer.creditedMicros += micros;
  }

  /** Sends a debit until it is taken, or refused because the wallet has less. @returns whether it was taken */
  async debitUntilDone({ key }: Buyer, micros: number, reference: string): Promise<boolean> {
    const body = { account_id: key.account_id, amount: micros / 1e6, reference, reason: 'a fault schedule' };
    return (await this.#sendUntilDone('/api/v1/admin/debits', body, [409])).status !== 409;
  }

  /** Sends a refund until there is an answer. Its status: 200 or 201; 404: there is no such call (yet); 409: it was refused */
  async refundUntilAnswered(
    usageId: string,
    { micros, reference, key }: { readonly micros: number | null; readonly reference: string; readonly key: Key },
  ): Promise<{ readonly status: number; readonly gaveMicros: number | null }> {
    const amount = micros === null ? {} : { amount: micros / 1e6 };
    const body = { ...amount, reference, reason: 'a fault schedule' };
    const path = `/api/v1/usage/${usageId}/refund`;
    const { status, text } = await this.#sendUntilDone(path, body, [404, 409], { method: 'POST', key });
    if (status >= 400) return { status, gaveMicros: null };
    return { status, gaveMicros: Math.round((JSON.parse(text) as { amount: number }).amount * 1e6) };
  }

  /** Lowers the budget of a child key, or revokes it, until that is confirmed. */
  async changeUntilDone({ key: root, children }: Buyer, { key, micros }: PlannedChange): Promise<void> {
    const child = children[key] as Child;
    const path = `/api/v1/keys/${child.key.key_id}`;
    child.change = { micros, sentMs: Date.now(), doneMs: Number.POSITIVE_INFINITY };
    if (micros === null) await this.#sendUntilDone(path, null, [], { method: 'DELETE', key: root });
    else await this.#sendUntilDone(path, { budget: { amount: micros / 1e6 } }, [], { method: 'PATCH', key: root });
    child.change.doneMs = Date.now();
  }

  /** @returns the answer: a success, or a status of `final` */
  #sendUntilDone(
    path: string,
    body: object | null,
    final: readonly number[],
    { method, key } = { method: 'POST', key: this.admin },
  ): Promise<Answer> {
    let last = '';
    return until(async () => {
      const answer = await this.#send(method, path, body === null ? { key } : { key, body });
      const { status, text } = answer;
      if (status === 200 || status === 201 || final.includes(status)) return answer;
      last = `${method} ${path}: ${status} ${text}`;
      if (status >= 400 && status < 500 && status !== 429) throw new Error(last);
      // The admin's rate limit has to last for all schedules.
      await sleep(RETRY_MS);
      return false;
    }).catch((cause: Error) => {
      throw new Error(`the last answer was ${last}`, { cause });
    });
  }

  /** Makes workers send a trip to Redis, so that each notices that Redis is back. @returns how many answered */
  async nudge(): Promise<number> {
    const answers = await Promise.all(Array.from({ length: 4 }, () => this.#send('GET', '/api/v1/discover', {})));
    return answers.filter(({ status }) => status === 200).length;
  }

  /** Whether calls of this buyer are admitted, or refused for want of money or tokens. The call is free. */
  async serves({ key }: Buyer): Promise<boolean> {
    const free = this.listings.find(({ priceMicros, maxMicros }) => priceMicros === 0 && maxMicros === null) as Listing;
    const { status } = await this.#send('GET', `/api/v1/proxy/${free.id}/fast`, { key });
    return status === 200 || status === 402 || status === 429;
  }

  /** @returns the response; its status is 0 when there was no answer */
  #send(method: string, path: string, { key, body }: { readonly key?: Key; readonly body?: object }): Promise<Answer> {
    return new Promise((resolve) => {
      const headers: Record<string, string> = { Connection: 'close' };
      if (key !== undefined) headers.Authorization = authorization(key);
      if (body !== undefined) headers['Content-Type'] = 'application/json';
      const url = this.baseUrl + path;
      const sent = request(url, { method, headers, agent: false, timeout: REQUEST_MS }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => {
          text += piece;
        });
        response.on('close', () => resolve({ status: response.complete ? (response.statusCode ?? 0) : 0, text }));
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('error', () => resolve({ status: 0, text: '' }));
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}
