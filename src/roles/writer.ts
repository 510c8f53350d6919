import type { Config } from '../config/config.ts';
import { RetentionJob } from '../ledger/retention/retention-job.ts';
import { KeyDaysJob } from '../ledger/rollups/key-days-job.ts';
import { CreditWallets } from '../ledger/wallets/credit-wallets.ts';
import { DebitWallets } from '../ledger/wallets/debit-wallets.ts';
import { Hydrator } from '../ledger/wallets/hydrate.ts';
import { UsageWriter } from '../ledger/writing/writer.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Job } from '../platform/job.ts';
import { NodeWatch } from '../platform/node-watch.ts';
import { isPostgresUnavailable } from '../platform/postgres.ts';
import { QualityJob } from '../quality/quality-job.ts';
import { EndedSessions } from '../sessions/ended-sessions.ts';
import { LOOKS } from '../traffic/looks.ts';
import { nameOf } from '../traffic/name.ts';
import { Reporter } from '../traffic/reporter.ts';
import { UpstreamClient } from '../upstream/index.ts';
import { HealthJob, type HealthJobOptions } from '../watch/health-job.ts';
import { writerNodeMetrics } from './redis-node-metrics.ts';
import { type RedisNode, redisNodes } from './redis-nodes.ts';
import { newInstanceId, type Stores } from './stores.ts';
import { Upkeep } from './upkeep.ts';
import { writerMetrics } from './writer-metrics.ts';

/** How long the writer and its jobs may take to stop. Usage that is not stored by then stays in Redis for the next writer. */
const STOP_MS = 5_000;
/**
 * How much of STOP_MS the sweep may take. The sweep stops before the writer's last flush, so that the flush also stores what
 * the sweep has settled. A sweep ends within milliseconds unless Redis is slow.
 */
const SWEEP_STOP_MS = 1_000;

/** Bounds of the client that asks services whether they are up. Each service is asked by one request at a time. */
const HEALTH_CHECKS = {
  maxConnectionsPerOrigin: 1,
  maxWaitingPerOrigin: 1,
  maxWaitMs: 1_000,
  connectTimeoutMs: 5_000,
  keepAliveMs: 1_000,
  maxHeadBytes: 65_536,
};

export type Writer = { stop(): Promise<void> };

/** Starts the jobs that store usage in Postgres and clean up after dead gateways, and those that compute from the stored data. */
export async function startWriter(options: {
  readonly config: Pick<
    Config,
    | 'databaseUrl'
    | 'redisUrl'
    | 'platformFeeBasisPoints'
    | 'instanceLeaseSeconds'
    | 'upstreamAllowCidrs'
    | 'usageRetentionDays'
    | 'exportDir'
  >;
  /** Settings of the health checks, for tests. */
  readonly health?: Pick<HealthJobOptions, 'intervalMs' | 'lookMs'>;
  readonly stores: Pick<Stores, 'sql' | 'redis' | 'cluster' | 'keys' | 'installation'>;
  readonly metrics: Metrics;
  readonly log: Log;
}): Promise<Writer> {
  const { config, stores, metrics, log } = options;
  const { redis, cluster, keys, sql, installation } = stores;
  const writer = new UsageWriter({
    databaseUrl: config.databaseUrl,
    installation,
    redis,
    redisUrl: cluster === null ? config.redisUrl : null,
    keys,
    feeBasisPoints: config.platformFeeBasisPoints,
    onDoubt: () => {
      for (const job of upkeep.reconcileJobs) job.soon();
    },
    log,
  });
  const hydrator = new Hydrator({ databaseUrl: config.databaseUrl, installation, sql, redis, keys, log });
  const credits = new CreditWallets({ sql, redis, keys, hydrator, log });
  const debits = new DebitWallets({ sql, redis, keys, hydrator, log });
  const isActive = (): boolean => writer.owns(0);
  const upkeep = new Upkeep({ stores, leaseSeconds: config.instanceLeaseSeconds, isActive, log });
  const quality = new QualityJob({ sql, isActive, log });
  const endedSessions = new EndedSessions({ sql, isActive, log });
  const { databaseUrl, exportDir, usageRetentionDays: retentionDays } = config;
  const retention = new RetentionJob({ databaseUrl, installation, retentionDays, exportDir, log });
  const keyDays = new KeyDaysJob({ databaseUrl, installation, log });
  const nodes = (): RedisNode[] => redisNodes(stores, config.redisUrl);
  const nodeWatch = new NodeWatch({ nodes, kind: cluster === null ? 'single' : 'cluster', log });
  metrics.add([...writerMetrics({ writer, upkeep, hydrator, retention }), ...writerNodeMetrics(nodes, nodeWatch)]);
  const upstream = new UpstreamClient({ ...HEALTH_CHECKS, allowCidrs: config.upstreamAllowCidrs });
  const health = new HealthJob({ ...options.health, client: upstream, sql, log });
  const reporter = new Reporter({
    redis,
    name: nameOf('writer', newInstanceId(), null),
    shards: () => writer.stats().ownedShards,
  });
  const unlisten = await listenForLooks(sql, reporter);
  const jobs = [
    credits,
    debits,
    ...upkeep.reconcileJobs,
    quality,
    keyDays,
    endedSessions,
    retention,
    health,
    nodeWatch,
  ];
  writer.start();
  for (const job of [...upkeep.sweepers, ...jobs]) job.start();
  return {
    stop: async () => {
      unlisten();
      await reporter.stop();
      // These stop at the same time: the writer's last flush must not wait for a credit that is stuck, or for a reconciliation
      // that still locks shards.
      await Promise.all([
        stopAll(upkeep.sweepers, SWEEP_STOP_MS).then(() => writer.stop(STOP_MS - SWEEP_STOP_MS)),
        stopAll(jobs, STOP_MS),
      ]);
      await upstream.close();
      hydrator.close();
    },
  };
}

const stopAll = (jobs: readonly Pick<Job, 'stop'>[], timeoutMs: number): Promise<unknown> =>
  Promise.all(jobs.map((job) => job.stop(timeoutMs)));

/** While Postgres is away this only tries: the listener begins as soon as Postgres is back. */
async function listenForLooks(sql: Stores['sql'], reporter: Reporter): Promise<() => void> {
  try {
    return await sql.listen({ channel: LOOKS, onMessage: () => reporter.looked() });
  } catch (error) {
    if (!isPostgresUnavailable(error)) throw error;
    return () => {};
  }
}
