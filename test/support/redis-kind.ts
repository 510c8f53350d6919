// Which kind of Redis the marketplaces of a test run have: one Redis, or (`npm run test:cluster`) a Redis Cluster.

import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { type RunningCluster, startTestCluster } from './cluster.ts';
import { scratchDir, startTestRedis, type TestRedis } from './stores.ts';

export const ON_CLUSTER = process.env.TOLLGATE_TEST_REDIS === 'cluster';

/** Where `npm run test:cluster` finds the reasons, one a line (scripts/test.mjs). */
const REASONS_FILE = 'one-redis.txt';

/**
 * Marks tests that speak of one Redis by their nature: `it.skipIf(oneRedis('restarts it'))`, likewise with `describe`. On a cluster
 * they are skipped, and the run ends with the list of the reasons.
 *
 * @param reason  completes the sentence 'not on a cluster, because it …'
 */
export function oneRedis(reason: string): boolean {
  if (ON_CLUSTER) {
    const file = path.relative(process.cwd(), expect.getState().testPath ?? '');
    appendFileSync(path.join(scratchDir(), REASONS_FILE), `${file}: ${reason}\n`);
  }
  return ON_CLUSTER;
}

/** Clusters of this worker that no marketplace uses. A cluster takes 2 s to start, and 10 ms to empty. */
const idle: RunningCluster[] = [];

/** What a marketplace's Redis can do whatever its kind. */
export type MarketRedis = { readonly url: string; stop(): Promise<void> };

/** An empty Redis of the run's kind, for one marketplace. */
export async function startMarketRedis(options: Parameters<typeof startTestRedis>[0] = {}): Promise<MarketRedis> {
  if (!ON_CLUSTER) return startTestRedis(options);
  // Without replicas: no test of this kind lets a master fail. Those are test/integration/redis-cluster.test.ts and test/fault.
  const cluster = idle.pop() ?? (await startTestCluster({ replicas: 0 }));
  return {
    url: cluster.url,
    stop: async () => {
      for (const node of cluster.nodes) await cluster.ask(node, 'FLUSHALL');
      idle.push(cluster);
    },
  };
}

/** The same Redis with what only a single one can do. @throws on a cluster: the test needs `oneRedis` */
export function asOneRedis(redis: MarketRedis): TestRedis {
  if ('pause' in redis) return redis as TestRedis;
  throw new Error('this test speaks of one Redis: mark it with oneRedis() of test/support/redis-kind.ts');
}
