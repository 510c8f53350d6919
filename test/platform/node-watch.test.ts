import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NodeWatch } from '../../src/platform/node-watch.ts';
import { RedisClient } from '../../src/platform/redis.ts';
import { readNodeInfo } from '../../src/platform/redis-node.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { until } from '../support/wait.ts';

const SILENT = { warn() {} };

let servers: TestRedis[];
let clients: RedisClient[];
beforeAll(async () => {
  servers = await Promise.all([startTestRedis(), startTestRedis()]);
  clients = servers.map(({ url }) => new RedisClient({ url, name: 'test', commandTimeoutMs: 5_000 }, SILENT));
  await Promise.all(clients.map((client) => client.connect()));
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

type Line = { readonly node: unknown; readonly level: string; readonly message: string };

function watching(nodes: () => readonly RedisClient[]): { watch: NodeWatch; lines: Line[] } {
  const lines: Line[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ node: (fields as { node: unknown }).node, level, message });
  const watch = new NodeWatch({
    nodes: () => nodes().map((store) => ({ address: store.address, store })),
    kind: 'cluster',
    log: { info: at('info'), warn: at('warn'), error: at('error') },
  });
  return { watch, lines };
}

describe('a watch over Redis nodes', () => {
  it('reports once that a Redis begins to evict keys, and once that it no longer does', async () => {
    const [first, second] = clients as [RedisClient, RedisClient];
    const { watch, lines } = watching(() => clients);
    const faults = (): unknown[] => [first, second].map(({ address }) => watch.infos.get(address)?.fault);
    await watch.look();
    expect(faults()).toEqual([null, null]);
    await second.command('config', ['SET', 'maxmemory-policy', 'allkeys-lru']);
    await watch.look();
    await watch.look();
    expect(faults()).toEqual([null, expect.stringContaining('maxmemory-policy allkeys-lru')]);
    await second.command('config', ['SET', 'maxmemory-policy', 'noeviction']);
    await watch.look();
    expect(faults()).toEqual([null, null]);
    expect(lines).toEqual([
      { node: second.address, level: 'error', message: expect.stringContaining('it would evict money') },
      { node: second.address, level: 'warn', message: 'this redis is now configured as required' },
    ]);
  });

  it('reports for a node that joins later what a start reports for existing nodes', async () => {
    const [first, second] = clients as [RedisClient, RedisClient];
    const nodes = [first];
    const { watch, lines } = watching(() => nodes);
    await watch.look();
    expect(lines).toEqual([]);
    nodes.push(second);
    await watch.look();
    expect(lines).toEqual([{ node: second.address, level: 'warn', message: expect.stringContaining('AOF off') }]);
  });

  it('has no information about a node that left or does not answer', async () => {
    const [first, second] = clients as [RedisClient, RedisClient];
    const gone = new RedisClient({ url: 'redis://127.0.0.1:1', name: 'test', commandTimeoutMs: 100 }, SILENT);
    const nodes = [first, gone];
    const { watch } = watching(() => nodes);
    await watch.look();
    expect([...watch.infos.keys()]).toEqual([first.address]);
    nodes.splice(0, 2, second);
    await watch.look();
    expect([...watch.infos.keys()]).toEqual([second.address]);
    gone.destroy();
  });

  it('counts a replica only while the replica follows its master', async () => {
    const [first, second] = clients as [RedisClient, RedisClient];
    const { watch } = watching(() => [first]);
    const replicas = async (): Promise<number | undefined> => {
      await watch.look();
      return watch.infos.get(first.address)?.replicas;
    };
    expect(await replicas()).toBe(0);
    // Redis waits five seconds for more replicas, to serve them together.
    await first.command('config', ['SET', 'repl-diskless-sync-delay', '0']);
    await second.command('replicaof', first.address.split(':'));
    await until(async () => (await replicas()) === 1);
    await second.command('replicaof', ['NO', 'ONE']);
    await until(async () => (await replicas()) === 0);
  });
});

it('a replica that is still copying, or has long confirmed nothing, does not count', () => {
  const info = [
    'redis_version:7.0.15',
    'used_memory:1000',
    'used_memory_human:1K',
    'maxmemory:2000',
    'maxmemory_policy:noeviction',
    'slave0:ip=10.0.0.4,port=6379,state=online,offset=5,lag=1',
    'slave1:ip=10.0.0.5,port=6379,state=wait_bgsave,offset=0,lag=0',
    'slave2:ip=10.0.0.6,port=6379,state=online,offset=5,lag=11',
  ].join('\r\n');
  expect(readNodeInfo(info, 'single')).toEqual({
    memoryBytes: 1_000,
    maxMemoryBytes: 2_000,
    replicas: 1,
    fault: null,
    warnings: [],
  });
});
