// The stack that all clients and examples call: a marketplace with the services of `npm start`'s demo.

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { demoListings, endpointOf } from '../../scripts/demo/listings.mjs';
import { serveDemo } from '../../scripts/demo/service.mjs';
import { type Key, Marketplace } from '../integration/marketplace.ts';

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

  /** What a call of the listing costs. @param listing its name */
  priceOf(listing: string): string {
    const found = demoListings.find(({ listing: { name } }) => name === listing);
    return String(found?.listing.price);
  }

  /** A key that has used up its rate limit of one request per minute: its next request gets 429. */
  async exhausted(): Promise<Key> {
    const key = await this.market.buyer(1);
    const limit = { key: this.market.admin, method: 'PATCH', body: { rate_limit: 1 } };
    await this.market.json(`/api/v1/keys/${key.key_id}`, limit);
    await this.market.json('/api/v1/keys/me', { key });
    return key;
  }

  async stop(): Promise<void> {
    await this.market.stop();
    this.#service.close();
    this.#service.closeAllConnections();
  }
}

/** The value of a key for `Authorization: Bearer` and `X-Api-Key`. */
export const textOf = ({ key_id, secret }: Key): string => `${key_id}:${secret}`;
