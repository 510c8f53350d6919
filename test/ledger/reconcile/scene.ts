import { expect } from 'vitest';
import { selectRepairs } from '../../../src/ledger/reconcile/reconcile-sql.ts';
import type { Drift, ShardReport } from '../../../src/ledger/reconcile/report.ts';
import { Hydrator } from '../../../src/ledger/wallets/hydrate.ts';
import { admit, request, type Scene, settle } from '../../admission/calls.ts';
import { addKeyTo } from '../../support/accounts.ts';
import { QUIET } from '../../support/store.ts';
import { Ledger, newEvent } from '../support.ts';

/** A ledger whose wallets are loaded as gateways load them. Each comparison uses a new reconciler. */
export class ComparedLedger {
  readonly ledger: Ledger;
  readonly hydrator: Hydrator;

  private constructor(ledger: Ledger) {
    this.ledger = ledger;
    const { databaseUrl, sql, store } = ledger;
    this.hydrator = new Hydrator({ databaseUrl, sql, redis: store.redis, keys: store.keys, log: QUIET });
  }

  static async open(): Promise<ComparedLedger> {
    return new ComparedLedger(await Ledger.open());
  }

  async close(): Promise<void> {
    this.hydrator.close();
    await this.ledger.close();
  }

  /** Empties both stores. What Redis has from now on is known, as after a clean comparison, until it restarts or is replaced. */
  async clear(): Promise<void> {
    await this.ledger.clear();
    await this.ledger.knowRedis();
  }

  async run(): Promise<readonly ShardReport[]> {
    return (await this.ledger.reconciler().run('test')).reports;
  }

  async drifts(): Promise<readonly Drift[]> {
    return (await this.run()).flatMap((report) => report.drifts);
  }

  repairs() {
    return selectRepairs(this.ledger.sql, 100);
  }

  /** Makes an account with a key and a balance, and loads both into Redis. */
  async newScene(balanceMicros: number): Promise<Scene> {
    const { ledger, hydrator } = this;
    const accountId = await ledger.account(balanceMicros);
    const { keyId } = await addKeyTo(ledger.sql, accountId, 'buyer');
    await ledger.store.loadKey(keyId, accountId, 100_000);
    await hydrator.loadWallet(accountId);
    return { accountId, keyId, serviceId: newEvent().serviceId };
  }

  /** Opens a call that costs nothing: a wallet with something under way is repaired, and not dropped. */
  async keepBusy(...scenes: readonly Scene[]): Promise<void> {
    for (const scene of scenes) await admit(this.ledger.store, request(scene, 0));
  }

  async call(scene: Scene, price: number, refund = false, freeCalls = 0): Promise<string> {
    const one = request(scene, price, freeCalls);
    expect((await admit(this.ledger.store, one)).outcome).toBe('admitted');
    await settle(this.ledger.store, one, refund);
    return one.usageId;
  }

  async storeAll(): Promise<void> {
    const writer = this.ledger.startWriter();
    await this.ledger.drained();
    await writer.stop();
  }

  changeBalance({ accountId }: Scene, change: number): Promise<unknown> {
    return this.ledger.store.command('hincrby', this.ledger.store.walletName(accountId), 'balance', change);
  }

  /** The balance in Redis, loaded if it was dropped, and the settled balance in Postgres. */
  async balances({ accountId }: Scene): Promise<[redis: number, postgres: number]> {
    await this.hydrator.loadWallet(accountId);
    return [await this.ledger.store.balance(accountId), await this.ledger.balance(accountId)];
  }
}
