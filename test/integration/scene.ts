// One buyer, one service that does what the test says, and checks of how a call between them was charged.

import { expect } from 'vitest';
import { type Peer, type RawServer, rawServer } from '../upstream/helpers.ts';
import type { CallRecord, Key, Marketplace, ServiceOptions } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';

export const PRICE = 0.1;

type End = { readonly outcome: string; readonly status: number; readonly amount?: number };

export class Scene {
  readonly market: Marketplace;
  readonly buyer: Key;
  readonly path: string;
  readonly service: RawServer;
  readonly #callers: RawCaller[];

  private constructor(market: Marketplace, buyer: Key, path: string, service: RawServer, callers: RawCaller[] = []) {
    this.#callers = callers;
    this.market = market;
    this.buyer = buyer;
    this.path = path;
    this.service = service;
  }

  /** @param script what the service does with each connection */
  static async open(
    market: Marketplace,
    script: (peer: Peer, index: number) => unknown = () => {},
    options: Partial<ServiceOptions> = {},
  ): Promise<Scene> {
    const service = await rawServer(script);
    const buyer = await market.buyer(1);
    const path = await market.service({ endpoint: service.url, price: PRICE, ...options });
    return new Scene(market, buyer, path, service);
  }

  /** Opens another buyer of the same listing, whose calls share the service's connections. Closed with this scene. */
  async withAnotherBuyer(): Promise<Scene> {
    return new Scene(this.market, await this.market.buyer(1), this.path, this.service, this.#callers);
  }

  /** Sends a `GET`, or the given request line. @returns the caller */
  async call(line = 'GET', options: Parameters<typeof requestText>[1] = {}): Promise<RawCaller> {
    const caller = await RawCaller.connect(this.market.baseUrl);
    this.#callers.push(caller);
    caller.send(requestText(`${line} ${this.path}`, { key: this.buyer, ...options }));
    return caller;
  }

  /** Expects that this buyer's only call ended like this: one record, the right charge, no open hold. */
  async expectEnd({ outcome, status, amount = 0 }: End): Promise<CallRecord> {
    const records = await this.market.records(this.buyer);
    expect(records.map((record) => [record.outcome, record.status, record.amount])).toEqual([
      [outcome, status, amount],
    ]);
    expect(await this.market.balance(this.buyer)).toMatchObject({ balance: (1e6 - amount * 1e6) / 1e6, held: 0 });
    return records[0] as CallRecord;
  }

  /** Expects that nothing was admitted: no record, no charge, no open hold. */
  async expectNothing(): Promise<void> {
    expect(await this.market.records(this.buyer)).toEqual([]);
    expect(await this.market.balance(this.buyer)).toMatchObject({ balance: 1, held: 0 });
  }

  async close(): Promise<void> {
    for (const caller of this.#callers) caller.destroy();
    await this.service.close();
  }
}
