// Buyers, providers and calls between them in both stores, and what tests of refunds ask of these.

import { expect } from 'vitest';
import { storePayout } from '../../../src/accounts/payouts.ts';
import type { ApiResponse, Route } from '../../../src/http/route.ts';
import type { KeyRecord } from '../../../src/keys/caller.ts';
import { Fence } from '../../../src/ledger/history/fence.ts';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { CreditWallets } from '../../../src/ledger/wallets/credit-wallets.ts';
import { Wallets } from '../../../src/ledger/wallets/wallets.ts';
import { adminRefundsRoutes } from '../../../src/routes/admin/refunds.ts';
import { earningsRoutes } from '../../../src/routes/earnings.ts';
import { refundsRoutes } from '../../../src/routes/refunds.ts';
import { statementRoutes } from '../../../src/routes/statement.ts';
import { usageRoutes } from '../../../src/routes/usage.ts';
import { ComparedLedger } from '../../ledger/reconcile/scene.ts';
import { newEvent } from '../../ledger/support.ts';
import { addAccount, addKeyTo, addService, json, OPERATOR, send } from '../../support/accounts.ts';
import { QUIET } from '../../support/store.ts';

type Wanted = { readonly amount?: number; readonly reference?: string; readonly reason?: string };

/** A call whose money may be given back. */
export type Sold = Pick<UsageEvent, 'usageId' | 'accountId' | 'keyId' | 'serviceId'>;

export class RefundMarket {
  readonly compared: ComparedLedger;
  readonly credits: CreditWallets;
  readonly fence: Fence;
  readonly routes: readonly Route[];
  readonly warnings: object[] = [];
  provider!: KeyRecord;
  admin!: KeyRecord;
  serviceId!: string;

  constructor(compared: ComparedLedger) {
    this.compared = compared;
    const { sql, store } = compared.ledger;
    const { redis, keys } = store;
    const stores = { sql, redis, keys };
    this.fence = new Fence(stores);
    this.credits = new CreditWallets({ ...stores, hydrator: compared.hydrator, log: QUIET });
    const log = { warn: (fields: object) => void this.warnings.push(fields) };
    this.routes = [
      ...refundsRoutes({ sql, money: this.fence, applier: this.credits, log }),
      ...adminRefundsRoutes({ sql }),
      ...usageRoutes({ sql }),
      ...earningsRoutes({ sql, feeBasisPoints: 250 }),
      ...statementRoutes({ sql, wallets: new Wallets({ ...stores, hydrator: compared.hydrator }) }),
    ];
  }

  static async open(): Promise<RefundMarket> {
    return new RefundMarket(await ComparedLedger.open());
  }

  async clear(): Promise<void> {
    await this.compared.clear();
    this.warnings.length = 0;
    const { sql } = this.compared.ledger;
    [this.provider, this.admin] = [await addAccount(sql, 'provider'), await addAccount(sql, 'admin')];
    this.serviceId = await addService(sql, this.provider.accountId, 'maps');
  }

  async buyer(balanceMicros = 1_000_000): Promise<KeyRecord> {
    const { ledger } = this.compared;
    return addKeyTo(ledger.sql, await ledger.account(balanceMicros), 'buyer');
  }

  /** Stores a call of the provider's service, without its admission: only a loaded wallet loses its price. */
  async sold(buyer: Pick<KeyRecord, 'accountId' | 'keyId'>, given: Partial<UsageEvent> = {}): Promise<Sold> {
    const { accountId, keyId } = buyer;
    const { provider, serviceId } = this;
    const event = newEvent({
      accountId,
      keyId,
      providerId: provider.accountId,
      serviceId,
      heldMicros: 10_000,
      ...given,
    });
    const { ledger } = this.compared;
    if ((await ledger.store.hash(ledger.store.walletName(accountId))).balance !== undefined) {
      await this.compared.changeBalance(event, -event.heldMicros);
    }
    await ledger.append(event);
    await this.compared.storeAll();
    return event;
  }

  refund(
    { usageId }: Pick<Sold, 'usageId'>,
    { reference = 'r', reason = 'cut off', ...amount }: Wanted = {},
    by = this.provider,
  ) {
    const body = { ...amount, reason, reference };
    return send(this.routes, 'POST /usage/:usage_id/refund', { by, body, params: { usage_id: usageId } });
  }

  payout(amountMicros: number, reference = 'p') {
    return storePayout(this.fence, { accountId: this.provider.accountId, amountMicros, reference }, OPERATOR);
  }

  /** The wallet in Redis (loaded if need be), that in Postgres, the provider's earnings and the platform's fees. */
  async money({
    accountId,
  }: Pick<Sold, 'accountId'>): Promise<[redis: number, wallet: number, earnings: number, fees: number]> {
    const { ledger, hydrator } = this.compared;
    await hydrator.loadWallet(accountId);
    const [row] = await ledger.sql<{ fees: number }[]>`
      SELECT coalesce(sum(balance), 0)::bigint AS fees FROM balances WHERE ledger = 'fees'`;
    const earnings = await ledger.balance(this.provider.accountId, 'earnings');
    return [await ledger.store.balance(accountId), await ledger.balance(accountId), earnings, row?.fees as number];
  }

  async ask(
    route: string,
    by: KeyRecord,
    sent: { query?: object; params?: Record<string, string> } = {},
  ): Promise<ReturnType<typeof json>> {
    return json(await send(this.routes, route, { by, ...sent }));
  }

  record({ usageId }: Pick<Sold, 'usageId'>, by: KeyRecord) {
    return this.ask('GET /usage/:usage_id', by, { params: { usage_id: usageId } });
  }

  /** The books add up, and both stores agree. */
  async check(): Promise<void> {
    await this.compared.ledger.readBooks();
    expect(await this.compared.drifts()).toEqual([]);
    expect(await this.compared.repairs()).toEqual([]);
  }

  async close(): Promise<void> {
    await this.credits.stop();
    await this.compared.close();
  }
}

export const answerOf = (response: ApiResponse) => [response.status, json(response)];
