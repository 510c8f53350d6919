import { afterAll, beforeAll, expect, it } from 'vitest';
import { ask } from '../support/replica.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { cutFile, writtenEnd } from './append-only-file.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis({ appendonly: true, appendfsync: 'always' });
});
afterAll(() => redis.stop());

/** As a gateway settles a call: its hold goes, its event comes. */
const settle = (call: string): Promise<string> =>
  ask(redis, `EVAL "redis.call('HDEL','open','${call}') redis.call('XADD','usage','*','e1','${call}')" 0`);

it('an event added after the file was cut survives the next start, even if the cut removed an event with a later clock', async () => {
  await ask(redis, 'HSET open lost 1 kept 1');
  await ask(redis, 'XADD usage 99999999999999-7 e1 before');
  const since = await writtenEnd(redis.dir, () => ask(redis, 'INFO persistence'));
  await settle('lost');
  await redis.kill();
  // In the last command, EXEC.
  cutFile(redis.dir, since, 0.99);
  await redis.restart();
  await settle('kept');
  await redis.kill();
  await redis.restart();
  expect(await ask(redis, 'XRANGE usage - +')).toContain('kept');
  expect(await ask(redis, 'HKEYS open')).toContain('lost');
});
