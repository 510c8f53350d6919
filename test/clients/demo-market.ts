// The stack that all clients and examples call: a marketplace with the services of `npm start`'s demo.

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { demoListings, endpointOf } from '../../scripts/demo/listings.mjs';
import { serveDemo } from '../../scripts/demo/service.mjs';
import { type Key, Marketplace } from '../integration/marketplace.ts';
import { until } from '../support/wait.ts';

export class DemoMarket {
  readonly market: Marketplace;
  readonly #ids: ReadonlyMap<string, string>;
  readonly #service: Server;

  private constructor(market: Marketplace, ids: ReadonlyMap<string, string>, service: Server) {
    this.market = market;
    this.#ids = ids;
    this.#service = service;
  }

  static async start(): Promise<DemoMarket> {
    const market = await Marketplace.start();
    const service = serveDemo(0);
    await once(service, 'listening');
    const { port } = service.address() as AddressInfo;
    const ids = new Map<string, string>();
    for (const { listing } of demoListings) {
      const body = { ...listing, endpoint: endpointOf(listing.name, port) };
      const made = await market.json<{ id: string }>('/api/v1/services', {
        key: market.provider,
        method: 'POST',
        body,
      });
      ids.set(listing.name, made.id);
    }
    return new DemoMarket(market, ids, service);
  }

  get url(): string {
    return this.market.baseUrl;
  }

  /** @returns the URL of a listing behind the gateway, with a slash at its end */
  proxyUrl(listing: string): string {
    const id = this.#ids.get(listing);
    if (id === undefined) throw new Error(`the demo has no ${listing}`);
    return `${this.url}/api/v1/proxy/${id}/`;
  }

  /** @returns the endpoint of a listing, as its service has it */
  endpointOf(listing: string): string {
    const { port } = this.#service.address() as AddressInfo;
    return endpointOf(listing, port) ?? '';
  }

  /** What a call of the listing costs. @param listing its name */
  priceOf(listing: string): string {
    const found = demoListings.find(({ listing: { name } }) => name === listing);
    return String(found?.listing.price);
  }

  /** A buyer's key whose next request gets 429, whenever that comes. */
  async exhausted(perMinute: number): Promise<Key> {
    const { redis, keys } = this.market.stores;
    const key = await this.market.buyer(1);
    await this.limit(key, perMinute);
    // The first request brings the key into Redis.
    await this.market.json('/api/v1/keys/me', { key });
    // A bucket whose time lies in the future is refilled only from the next request on.
    const later = String(Date.now() + 3_600_000);
    await redis.command('hset', [keys.key(keys.shardOf(key.account_id), key.key_id), 'tokens', '0', 'ts', later]);
    return key;
  }

  async limit(key: Key, perMinute: number): Promise<void> {
    const options = { key: this.market.admin, method: 'PATCH', body: { rate_limit: perMinute } };
    // A gateway on a busy machine may say 503, and to send it again.
    await until(async () => {
      const response = await this.market.request(`/api/v1/keys/${key.key_id}`, options);
      const text = await response.text();
      if (response.status !== 503 && !response.ok) throw new Error(`${response.status} ${text}`);
      return response.ok;
    });
  }

  /** How many calls of the key were admitted. It asks Postgres, because the key itself may have no request left. */
  async admittedCalls(key: Key): Promise<number> {
    await this.market.settled(key.account_id);
    const rows = await this.market.stores.sql<{ calls: number }[]>`
      SELECT count(*)::int AS calls FROM calls WHERE key_id = ${key.key_id}`;
    return rows[0]?.calls ?? 0;
  }

  async stop(): Promise<void> {
    await this.market.stop();
    this.#service.close();
    this.#service.closeAllConnections();
  }
}

/** The value of a key for `Authorization: Bearer` and `X-Api-Key`. */
export const textOf = ({ key_id, secret }: Key): string => `${key_id}:${secret}`;
