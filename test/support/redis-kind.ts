// Which kind of Redis the marketplaces of a test run have: one Redis, or (`npm run test:cluster`) a Redis Cluster.

import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import type { RedisStore } from '../../src/platform/redis.ts';
import type { Stores } from '../../src/roles/stores.ts';
import { type RunningCluster, startTestCluster } from './cluster.ts';
import { scratchDir, startTestRedis, type TestRedis } from './stores.ts';

const ON_CLUSTER = process.env.TOLLGATE_TEST_REDIS === 'cluster';

/**
 * Marks tests that speak of one Redis by their nature: `it.skipIf(oneRedis('restarts it'))`, likewise with `describe`. On a cluster
 * they are skipped, and `npm run test:cluster` ends with the list of the reasons.
 *
 * @param reason  completes the sentence 'one Redis only, because it …'
 */
export function oneRedis(reason: string): boolean {
  if (ON_CLUSTER) {
    const file = path.relative(process.cwd(), expect.getState().testPath ?? '');
    // scripts/test.mjs reads it.
    appendFileSync(path.join(scratchDir(), 'one-redis.txt'), `${file}: ${reason}\n`);
  }
  return ON_CLUSTER;
}

/** Clusters of this worker that no marketplace uses. A cluster takes 2 s to start, and 10 ms to empty. */
const idle: RunningCluster[] = [];

/** Starts an empty Redis of the run's kind for one marketplace. */
export async function startMarketRedis(options: Parameters<typeof startTestRedis>[0] = {}): Promise<TestRedis> {
  if (!ON_CLUSTER) return startTestRedis(options);
  // Without replicas: no test of this kind lets a master fail. Those are test/integration/redis-cluster.test.ts and test/fault.
  return new SharedCluster(idle.pop() ?? (await startTestCluster({ replicas: 0 })));
}

/** A cluster as if it were one Redis, as far as that goes. What does not go throws: such tests need `oneRedis`. */
class SharedCluster implements TestRedis {
  readonly #cluster: RunningCluster;
  readonly url: string;

  constructor(cluster: RunningCluster) {
    this.#cluster = cluster;
    this.url = cluster.url;
  }

  /** Gives it to the next marketplace. A cluster that a failed test has left in disorder ends instead. */
  async release(): Promise<void> {
    this.resume();
    const replies = await Promise.all(this.#cluster.nodes.map((node) => this.#cluster.ask(node, 'FLUSHALL')));
    if (replies.every((reply) => reply.startsWith('+OK'))) idle.push(this.#cluster);
    else await this.#cluster.stop();
  }

  pause(): void {
    for (const node of this.#cluster.nodes) node.pause();
  }

  resume(): void {
    for (const node of this.#cluster.nodes) node.resume();
  }

  get port(): number {
    throw needsOneRedis();
  }

  get pid(): number {
    throw needsOneRedis();
  }

  get dir(): string {
    throw needsOneRedis();
  }

  stop(): Promise<void> {
    throw needsOneRedis();
  }

  kill(): Promise<void> {
    throw needsOneRedis();
  }

  restart(): Promise<void> {
    throw needsOneRedis();
  }
}

const needsOneRedis = (): Error =>
  new Error('this test speaks of one Redis: mark it with oneRedis() of test/support/redis-kind.ts');

/** Sends a command that names no key to each Redis server of a marketplace. */
export async function tellEachServer({ redis, cluster }: Stores, name: string, args: readonly string[]): Promise<void> {
  for (const server of serversOf({ redis, cluster })) await server.command(name, args);
}

/** Of a cluster: one shard of each node. */
export function serversOf({ redis, cluster }: Pick<Stores, 'redis' | 'cluster'>): readonly RedisStore[] {
  if (cluster === null) return [redis];
  return Array.from(new Map(cluster.shards.map((shard) => [shard.address, shard])).values());
}
