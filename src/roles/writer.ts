import type { Config } from '../config/config.ts';
import { Sweeper } from '../ledger/sweep.ts';
import { CreditWallets } from '../ledger/wallet-state.ts';
import { UsageWriter } from '../ledger/writer.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Stores } from './stores.ts';

export type Writer = { stop(): Promise<void> };

/** Starts what moves usage from Redis to Postgres and cleans up after the dead: writer, sweep, credits. */
export async function startWriter(options: {
  readonly config: Config;
  readonly stores: Stores;
  readonly metrics: Metrics;
  readonly log: Log;
}): Promise<Writer> {
  const { config, stores, log } = options;
  const { redis, keys, sql } = stores;
  const writer = new UsageWriter({
    databaseUrl: config.databaseUrl,
    redis,
    keys,
    feeBasisPoints: config.platformFeeBasisPoints,
    log,
  });
  const sweeper = new Sweeper({ redis, keys, leaseSeconds: config.instanceLeaseSeconds, log });
  const credits = new CreditWallets({ sql, redis, keys, log });
  await writer.start();
  sweeper.start();
  credits.start();
  return {
    stop: async () => {
      credits.stop();
      sweeper.stop();
      await writer.stop();
    },
  };
}
