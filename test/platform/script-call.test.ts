import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineScript, RedisClient } from '../../src/platform/redis.ts';
import { ScriptCall } from '../../src/platform/script-call.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';

const ECHO = defineScript('echo', 'return {KEYS, ARGV}');

describe('an encoded script call', () => {
  let server: TestRedis;
  let redis: RedisClient;
  beforeAll(async () => {
    server = await startTestRedis();
    redis = new RedisClient({ url: server.url, name: 'test', commandTimeoutMs: 5_000 }, { warn() {} });
    await redis.connect();
  });
  afterAll(async () => {
    await redis.close();
    await server.stop();
  });

  it('arrives as it was written, whatever ASCII it holds, and is loaded when Redis does not know it', async () => {
    const ascii = fc.string({
      unit: fc.integer({ min: 0, max: 0x7f }).map((code) => String.fromCharCode(code)),
      maxLength: 40,
    });
    await fc.assert(
      fc.asyncProperty(fc.array(ascii, { maxLength: 5 }), fc.array(ascii, { maxLength: 20 }), async (keys, args) => {
        const call = new ScriptCall();
        for (const key of keys) call.key(key);
        for (const arg of args) call.arg(arg);
        expect(await redis.run(ECHO, call)).toEqual([keys, args]);
      }),
      { numRuns: 200 },
    );
  });

  it('begun anew has nothing of a run that broke off', async () => {
    const call = new ScriptCall();
    call.key('left');
    call.arg('over');
    call.begin();
    call.arg('new');
    expect(await redis.run(ECHO, call)).toEqual([[], ['new']]);
    // Longer than the memory it starts with.
    call.arg('x'.repeat(100_000));
    expect(await redis.run(ECHO, call)).toEqual([[], ['x'.repeat(100_000)]]);
  });

  it('with characters beyond ASCII still ends where it should', async () => {
    const call = new ScriptCall();
    call.key('k');
    call.arg('caf\u00e9 \u20ac\r\n$3');
    call.arg('after');
    const [, args] = (await redis.run(ECHO, call)) as [string[], string[]];
    expect(args).toHaveLength(2);
    expect(args[1]).toBe('after');
  });
});
