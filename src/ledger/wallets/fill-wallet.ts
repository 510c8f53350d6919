import type { RedisStore } from '../../platform/redis.ts';
import { freeField, type RedisKeys } from '../../platform/redis-keys.ts';
import { hydrateWalletScript } from '../scripts.ts';
import type { LatestBudgets } from './latest-budgets-sql.ts';

/** What a wallet is filled with. Amounts in micro-USD. */
export type WalletContent = {
  readonly balance: number;
  readonly creditSeq: number;
  readonly debitSeq: number;
  readonly debited: number;
  /** Free calls used, by service. */
  readonly free: Readonly<Record<string, number>> | null;
  readonly budgets: LatestBudgets;
};

/**
 * Until when (ms, Redis's clock), and with which marks Redis accepts a wallet: those seen before Postgres was read, and that of the
 * last flush.
 */
export type Permit = { readonly untilMs: number; readonly seen: string; readonly lastFlush: string };

/** The replies of hydrate-wallet.lua. */
const FILLS = ['was there', 'filled', 'refused'] as const;

/** Fills a wallet that Redis lacks. @returns 'refused': it is too late, or Redis has another mark */
export async function fillWallet(
  { redis, keys }: { readonly redis: RedisStore; readonly keys: RedisKeys },
  accountId: string,
  { balance, creditSeq, debitSeq, debited, free, budgets }: WalletContent,
  { untilMs, seen, lastFlush }: Permit,
): Promise<(typeof FILLS)[number]> {
  const shard = keys.shardOf(accountId);
  const args = [keys.wallet(shard, accountId), keys.mark[shard] as string, String(untilMs), seen, lastFlush];
  args.push(...[balance, creditSeq, debitSeq, debited].map(String));
  const spent = Object.entries(budgets ?? {});
  args.push(String(spent.length));
  for (const [keyId, [period, spentMicros]] of spent) args.push(keyId, String(spentMicros), String(period));
  for (const [serviceId, used] of Object.entries(free ?? {})) args.push(freeField(serviceId), String(used));
  return FILLS[(await redis.script(hydrateWalletScript, 2, args)) as 0 | 1 | 2];
}
