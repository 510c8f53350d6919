import { afterAll, beforeAll, expect, it } from 'vitest';
import { uuidv7 } from '../../src/platform/ids.ts';
import { ask } from '../support/replica.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { callsWrittenSince, cutFile, type FileEnd, writtenEnd } from './append-only-file.ts';

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

it('a cut file says which calls it has lost a write of, also of what was cut in the middle', async () => {
  const [stored, first, last] = [uuidv7(), uuidv7(), uuidv7()];
  await ask(redis, `HSET open ${last} 1`);
  const end = () => writtenEnd(redis.dir, () => ask(redis, 'INFO persistence'));
  await settle(stored);
  const since = await end();
  await settle(first);
  const between = await end();
  await settle(last);
  await redis.kill();
  expect(new Set(callsWrittenSince(redis.dir, since))).toEqual(new Set([first, last]));
  // In the middle of a transaction, in the middle of a command, and before that.
  const lost = ([from, part]: readonly [FileEnd, number]) => [...new Set(cutFile(redis.dir, from, part))];
  const cuts = [
    [between, 0.99],
    [since, 0.99],
    [since, 0],
    [since, 0],
  ] as const;
  expect(cuts.map(lost)).toEqual([[last], [first], [first], []]);
  await redis.restart();
});
