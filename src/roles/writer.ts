import type { Config } from '../config/config.ts';
import { Hydrator } from '../ledger/hydrate.ts';
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
  const hydrator = new Hydrator({ databaseUrl: config.databaseUrl, sql, redis, keys, log });
  const credits = new CreditWallets({ sql, redis, keys, hydrator, log });
  writer.start();
  sweeper.start();
  credits.start();
  return {
    stop: async () => {
      await credits.stop();
      await sweeper.stop();
      await writer.stop();
      hydrator.close();
    },
  };
}
