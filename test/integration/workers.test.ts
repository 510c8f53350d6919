import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildSources } from '../support/build.ts';
import { emptyBucket } from '../support/empty-bucket.ts';
import type { Key } from './market-client.ts';
import { echo, startService, type TestService } from './marketplace.ts';
import { RawCaller, type RawResponse } from './raw-caller.ts';
import { WorkerStack } from './worker-stack.ts';

let stack: WorkerStack;
let service: TestService;

beforeAll(async () => {
  stack = await WorkerStack.start(buildSources());
  service = await startService(echo);
});
afterAll(async () => {
  await stack.stop();
  await service.close();
});

/** Connections, which the kernel distributes to the workers at random: all go to one of two once in 10^14 times. */
const CONNECTIONS = 48;

/** Requests per minute that a key may send. */
const TOKENS_PER_SECOND = 5;

/** Does this at once over as many connections. They are new ones: the gateway ends those that idle. */
async function overAll<T>(work: (caller: RawCaller, i: number) => Promise<readonly T[]>): Promise<T[]> {
  const callers = await Promise.all(Array.from({ length: CONNECTIONS }, () => RawCaller.connect(stack.baseUrl)));
  try {
    return (await Promise.all(callers.map(work))).flat();
  } finally {
    for (const caller of callers) caller.destroy();
  }
}

/** Sends this many calls at once over all connections. */
function calls(path: string, key: Key, count: number): Promise<RawResponse[]> {
  return overAll(async (caller, i) => {
    const responses: RawResponse[] = [];
    // From its own address, because the address counts where the key does not.
    const headers = [`X-Forwarded-For: 198.19.0.${i}`];
    for (let n = i; n < count; n += CONNECTIONS) responses.push(await caller.exchange(`GET ${path}`, { key, headers }));
    return responses;
  });
}

const count = <T>(values: readonly T[], value: T): number => values.filter((item) => item === value).length;
const statuses = (responses: readonly RawResponse[]): number[] => responses.map(({ status }) => status);

async function listed(options: { price: number; free_calls?: number }): Promise<string> {
  const path = await stack.service({ endpoint: service.url, ...options });
  await stack.listedEverywhere(path);
  return path;
}

/** Expects that both workers did some of the work between two readings. */
async function byBoth(metric: string, act: () => Promise<void>): Promise<void> {
  const before = await stack.samples(metric);
  await act();
  const after = await stack.samples(metric);
  for (const worker of ['1', '2']) expect(after.get(worker) ?? 0).toBeGreaterThan(before.get(worker) ?? 0);
}

describe('two workers and a writer', () => {
  it('serve exactly 100 of 200 calls free of charge when 100 are free', async () => {
    const path = await listed({ price: 0.01, free_calls: 100 });
    const key = await stack.buyer(5);
    await byBoth('tollgate_calls_admitted_total', async () => {
      const responses = await calls(path, key, 200);
      expect(count(statuses(responses), 200)).toBe(200);
      expect(responses.filter((response) => response.get('x-acf-free-tier') === 'true')).toHaveLength(100);
    });
    const records = await stack.records(key);
    expect(records).toHaveLength(200);
    expect(records.filter(({ amount, free_tier }) => free_tier && amount === 0)).toHaveLength(100);
    expect(await stack.balance(key)).toMatchObject({ balance: 4, held: 0 });
  });

  it('admit exactly 5 calls from a bucket of 5 tokens', async () => {
    const path = await listed({ price: 0.01 });
    const key = await stack.buyer(5);
    // The next token comes after 12 s.
    await stack.json(`/api/v1/keys/${key.key_id}`, { key: stack.admin, method: 'PATCH', body: { rate_limit: 5 } });
    const all = statuses(await calls(path, key, 144));
    expect([count(all, 200), count(all, 429)]).toEqual([5, 139]);
  });

  it('do not tell all refused callers to come back for the same tokens', async () => {
    const path = await listed({ price: 0 });
    const key = await stack.buyer(0);
    expect(count(statuses(await calls(path, key, CONNECTIONS)), 200)).toBe(CONNECTIONS);
    const { keys, redis } = stack.stores;
    const emptiedAt = performance.now();
    await emptyBucket(redis, keys.key(keys.shardOf(key.account_id), key.key_id));
    const responses = await calls(path, key, CONNECTIONS);
    const seconds = (performance.now() - emptiedAt) / 1000;
    const told = responses.flatMap(({ status, get }) => (status === 429 ? [Number(get('retry-after'))] : []));
    expect(told.length).toBeGreaterThan(CONNECTIONS / 2);
    // The n-th caller must find n tokens refilled. The waits are counted from the refusal of the last caller, so a slow
    // machine does not fail the test. If each worker promised all tokens, the last callers would come after half the time.
    const served = CONNECTIONS - told.length;
    told
      .sort((a, b) => a - b)
      .forEach((wait, i) => {
        const tokens = TOKENS_PER_SECOND * (seconds + wait);
        expect(served + i + 1, `${told} after ${seconds} s`).toBeLessThanOrEqual(tokens + 2);
      });
  });

  it('charge exactly 30 calls when the money is enough for 30', async () => {
    const path = await listed({ price: 0.01 });
    const key = await stack.buyer(0.3);
    await byBoth('tollgate_calls_refused_total', async () => {
      const all = statuses(await calls(path, key, 144));
      expect([count(all, 200), count(all, 402)]).toEqual([30, 114]);
    });
    await stack.settled(key.account_id);
    expect(await stack.balance(key)).toMatchObject({ balance: 0, held: 0 });
  });

  it('let the last cent be spent only once, round after round', async () => {
    const path = await listed({ price: 0.01 });
    const key = await stack.buyer(0);
    for (let round = 0; round < 5; round++) {
      await stack.credit(key, 0.01, `round ${round} of ${key.key_id}`);
      const all = statuses(await calls(path, key, 30));
      expect([count(all, 200), count(all, 402)]).toEqual([1, 29]);
    }
  });

  it('refuse a revoked key from the next call on, in every worker', async () => {
    const path = await listed({ price: 0.01 });
    const key = await stack.buyer(5);
    // Every worker has the key in its memory now.
    await byBoth('tollgate_calls_completed_total', async () => {
      expect(count(statuses(await calls(path, key, CONNECTIONS)), 200)).toBe(CONNECTIONS);
    });
    await byBoth('tollgate_calls_refused_total', async () => {
      await stack.request(`/api/v1/keys/${key.key_id}`, { key: stack.admin, method: 'DELETE' });
      expect(count(statuses(await calls(path, key, CONNECTIONS)), 401)).toBe(CONNECTIONS);
    });
  });

  it('refuse a suspended account from the next call on, in every worker', async () => {
    const path = await listed({ price: 0.01 });
    const key = await stack.buyer(5);
    expect(count(statuses(await calls(path, key, CONNECTIONS)), 200)).toBe(CONNECTIONS);
    const patch = { key: stack.admin, method: 'PATCH', body: { status: 'suspended' } };
    await byBoth('tollgate_calls_refused_total', async () => {
      await stack.json(`/api/v1/admin/accounts/${key.account_id}`, patch);
      expect(count(statuses(await calls(path, key, CONNECTIONS)), 403)).toBe(CONNECTIONS);
    });
  });

  it('share one bucket for an address without a key', async () => {
    // The next token comes after 3 s.
    const headers = ['X-Forwarded-For: 203.0.113.9'];
    const all = await overAll(async (caller) => [
      (await caller.exchange('GET /api/v1/discover', { headers })).status,
      (await caller.exchange('GET /api/v1/discover', { headers })).status,
    ]);
    expect([count(all, 200), count(all, 429)]).toEqual([20, 2 * CONNECTIONS - 20]);
  });

  it('keep the books balanced', async () => {
    expect(await stack.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });

  it('give every process its own label in one scrape of the metrics', async () => {
    const up = await stack.samples('tollgate_worker_up');
    expect(Object.fromEntries(up)).toEqual({ writer: 1, 1: 1, 2: 1 });
    expect(Array.from((await stack.samples('tollgate_responses_open')).keys()).sort()).toEqual(['1', '2']);
    expect(Array.from((await stack.samples('tollgate_writer_working')).keys())).toEqual(['writer']);
    const started = await stack.samples('process_start_time_seconds');
    expect(Array.from(started.keys()).sort()).toEqual(['1', '2', 'supervisor', 'writer']);
  });

  it('log the number of the worker in every line', () => {
    const lines = stack.supervisor.log.filter(({ role }) => role === 'gateway');
    expect(new Set(lines.map(({ worker }) => worker))).toEqual(new Set([1, 2]));
  });

  it('both answer on the public port', async () => {
    const answers = await overAll(async (caller) => [await caller.exchange('GET /readyz')]);
    expect(new Set(statuses(answers))).toEqual(new Set([200]));
  });
});
