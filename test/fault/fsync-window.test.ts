// How old an acknowledged write gets before it is on the disk, with `appendfsync everysec`. A power failure loses younger ones.
//
//   FSYNC_SECONDS=10 npx vitest run test/fault/fsync-window.test.ts

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { authorization, type Key, Marketplace, startService, type TestService } from '../integration/marketplace.ts';
import { oneRedis } from '../support/redis-kind.ts';

const SECONDS = Number(process.env.FSYNC_SECONDS ?? 3);
const CALLERS = 4;
/** Keys of each caller. Each key may call 300 times before its rate limit refuses it. */
const KEYS_OF_CALLER = 12;
/** An fsync that takes this long is noticed, however busy the machine is. */
const LONG_MS = 500;
/** Slack for Redis counting in whole seconds, one missed fsync of about 0.5 ms, and a busy machine. */
const SLACK_MS = 2_000;

type Fsyncs = {
  /** Writes acknowledged before `coversMs` are on the disk at `doneMs` at the latest. */
  readonly fsyncs: readonly { readonly coversMs: number; readonly doneMs: number }[];
  readonly samples: number;
  readonly mostUnwritten: number;
};

let market: Marketplace;
let service: TestService;

beforeAll(async () => {
  service = await startService((request, response) => {
    request.resume();
    response.end('done');
  });
  market = await Marketplace.start({}, { durableRedis: true });
  await market.stores.redis.command('config', ['set', 'appendfsync', 'everysec']);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

/** The time on a clock that all threads share. */
const now = (): number => performance.timeOrigin + performance.now();

async function newKeys(count: number): Promise<{ Authorization: string }[]> {
  const body = { owner_id: 'buyer', role: 'buyer' };
  const create = (): Promise<Key> => market.json<Key>('/api/v1/keys', { method: 'POST', body });
  const keys = await Promise.all(Array.from({ length: count }, create));
  await market.stores.sql`UPDATE api_keys SET rate_limit = 300 WHERE role = 'buyer'`;
  return keys.map((key) => ({ Authorization: authorization(key) }));
}

/** Calls until `untilMs`. @returns when each call was answered */
async function callUntil(
  untilMs: number,
  url: string,
  headers: readonly { Authorization: string }[],
): Promise<number[]> {
  const answeredMs: number[] = [];
  for (let i = 0; now() < untilMs; i++) {
    const response = await fetch(url, { headers: headers[i % headers.length] as { Authorization: string } });
    await response.text();
    if (response.status === 200) answeredMs.push(now());
  }
  return answeredMs;
}

const onOneRedis = it.skipIf(oneRedis('watches the process that writes its file'));

onOneRedis(
  'with everysec, an acknowledged write is on disk after one second plus the fsyncs around it',
  async (context) => {
    const url = `${market.baseUrl}${await market.service({ endpoint: service.url })}/`;
    const headers = await newKeys(CALLERS * KEYS_OF_CALLER);
    const untilMs = now() + SECONDS * 1_000;
    const { port } = market.redis;
    const watch = new Worker(new URL('./fsync-watch.mjs', import.meta.url), { workerData: { port, untilMs } });
    const seen = once(watch, 'message') as Promise<[Fsyncs]>;
    const callers = Array.from({ length: CALLERS }, (_, i) =>
      callUntil(untilMs, url, headers.slice(i * KEYS_OF_CALLER, (i + 1) * KEYS_OF_CALLER)),
    );
    const answeredMs = (await Promise.all(callers)).flat();
    const [{ fsyncs, samples, mostUnwritten }] = await seen;

    const longestMs = Math.max(...fsyncs.map(({ coversMs, doneMs }) => doneMs - coversMs));
    // Writes acknowledged after an fsync began are not on the disk until the next fsync ends.
    const windows = fsyncs.slice(1).map(({ doneMs }, i) => ({ from: fsyncs[i]?.coversMs as number, to: doneMs }));
    const oldestMs = Math.max(...windows.map(({ from, to }) => to - from));
    const calls = Math.max(...windows.map(({ from, to }) => answeredMs.filter((at) => at > from && at < to).length));
    console.log(
      `${answeredMs.length} calls in ${SECONDS} s; ${fsyncs.length} fsyncs in ${samples} samples, the longest ` +
        `${longestMs.toFixed()} ms; at most ${oldestMs.toFixed()} ms and ${calls} answered calls were not on the disk, ` +
        `and ${mostUnwritten} bytes not in the file`,
    );
    expect(answeredMs.length).toBeGreaterThan(SECONDS);
    // Missed fsyncs make the others look late: the number printed is never too low, and about right if one a second was seen.
    context.skip(fsyncs.length < SECONDS - 1 && !(longestMs > LONG_MS), 'fsyncs are too short to be seen here');
    expect(oldestMs).toBeLessThan(1_000 + 2 * longestMs + SLACK_MS);
  },
);
