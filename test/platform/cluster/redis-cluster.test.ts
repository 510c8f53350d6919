import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { evenTags, slotOf } from '../../../src/platform/cluster/hash-tags.ts';
import { RedisCluster } from '../../../src/platform/cluster/redis-cluster.ts';
import { StartRefused } from '../../../src/platform/start-refused.ts';
import { type ClusterNode, type RunningCluster, startTestCluster } from '../../support/cluster.ts';
import { startTestRedis } from '../../support/stores.ts';
import { until } from '../../support/wait.ts';

const TAGS = evenTags(4);

/** Two masters, without replicas. */
let running: RunningCluster;
let opened: RedisCluster[];
let lines: { readonly fields: object; readonly message: string }[];
beforeAll(async () => {
  running = await startTestCluster({ masters: 2, replicas: 0 });
  opened = [];
});
afterEach(() => {
  for (const cluster of opened.splice(0)) cluster.destroy();
});
afterAll(() => running.stop());

function open(url: string): RedisCluster {
  lines = [];
  const log = { warn: (fields: object, message: string) => void lines.push({ fields, message }) };
  const cluster = new RedisCluster({ url, name: 'test', commandTimeoutMs: 5_000, tags: TAGS }, log);
  opened.push(cluster);
  return cluster;
}
const addressOf = ({ port }: ClusterNode): string => `127.0.0.1:${port}`;
const [first, second] = [() => running.nodes[0] as ClusterNode, () => running.nodes[1] as ClusterNode];

it('shards that move are counted, and logged with the old and the new node', async () => {
  const cluster = open(running.url);
  await cluster.connect();
  const sizes = (): unknown => Array.from(cluster.byNode(), ([address, { length }]) => [address, length]);
  expect(sizes()).toEqual([
    [addressOf(first()), 2],
    [addressOf(second()), 2],
  ]);
  const id = async (node: ClusterNode): Promise<string> =>
    /[0-9a-f]{40}/.exec(await running.ask(node, 'CLUSTER MYID'))?.[0] ?? '';
  const give = async (node: ClusterNode): Promise<void> => {
    // Empty slots, so nothing has to be copied. The new owner is told first: a slot must not be without one.
    for (const tag of TAGS.slice(0, 2))
      for (const at of [node, ...running.nodes])
        await running.ask(at, `CLUSTER SETSLOT ${slotOf(`{${tag}}`)} NODE ${await id(node)}`);
  };
  await give(second());
  await until(async () => {
    // A shard learns of its new node by a command that the old one refuses.
    await cluster.command('get', [`a:{${TAGS[0]}}`]).catch(() => {});
    await cluster.command('get', [`a:{${TAGS[1]}}`]).catch(() => {});
    return cluster.moves === 2 && lines.length > 0;
  });
  expect(sizes()).toEqual([[addressOf(second()), 4]]);
  expect(lines).toEqual([
    {
      fields: { from: addressOf(first()), to: addressOf(second()), shards: [0, 1] },
      message: 'shards have moved to another redis node',
    },
  ]);
  await give(first());
});

describe('a start is refused, with a reason,', () => {
  const refusal = async (url: string): Promise<string> => {
    const error: unknown = await open(url)
      .connect()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StartRefused);
    return (error as Error).message;
  };

  it('when a master is away, and the reason names that master', async () => {
    second().pause();
    try {
      expect(await refusal(running.url)).toMatch(
        new RegExp(`not complete.*a master is away \\(cannot connect to redis at ${addressOf(second())}:`),
      );
    } finally {
      second().resume();
    }
  });

  it('when no node answers', async () => {
    expect(await refusal('redis+cluster://127.0.0.1:1,127.0.0.1:2')).toMatch(
      /^no node of the Redis Cluster .*127\.0\.0\.1:1: connect ECONNREFUSED.*127\.0\.0\.1:2: connect ECONNREFUSED/,
    );
  });

  it('when the node is in no cluster', async () => {
    const server = await startTestRedis();
    try {
      const address = new URL(server.url).host;
      expect(await refusal(`redis+cluster://${address}`)).toBe(
        `REDIS_URL begins with redis+cluster://, but ${address} says: ERR This instance has cluster support disabled`,
      );
    } finally {
      await server.stop();
    }
  });
});
