import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { uuidv7 } from '../../src/platform/ids.ts';
import { type Answer, decodeAnswer, encodeAnswer } from '../../src/replay/answer-text.ts';
import { Answers } from '../../src/replay/answers.ts';
import { claimOf, readIdempotencyKey } from '../../src/replay/idempotency-key.ts';
import { keepAnswerScript } from '../../src/replay/scripts.ts';
import { anyText } from '../support/any-text.ts';
import { SHARDS, Store } from '../support/store.ts';

const DAY_MS = 86_400_000;

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(async () => {
  await store.command('config', 'set', 'maxmemory', 0);
  await store.command('flushall');
});

const answerOf = (body: Buffer | string): Answer => ({
  status: 200,
  lines: '\r\nX-A: \xff',
  isAscii: false,
  contentLength: -1,
  hasBody: true,
  body: Buffer.from(body as string),
});

function answersOf({ maxBytes = 2 ** 30, share = 0 } = {}): Answers {
  const log = { warn() {} };
  return new Answers({
    redis: store.redis,
    keys: store.keys,
    maxAnswerBytes: 32_768,
    maxBytes,
    memoryShare: () => share,
    log,
  });
}

/** Accounts of one shard. */
function accounts(count: number): string[] {
  const found: string[] = [];
  while (found.length < count) {
    const id = uuidv7();
    if (store.keys.shardOf(id) === 0) found.push(id);
  }
  return found;
}

/** In microseconds, as answers have it. */
const dayAgo = async (): Promise<number> => ((await store.now()) - DAY_MS - 1) * 1_000;

/** What an answer counts: its names and its entries in the indexes take memory, too. */
const sizeOf = (text: string): number => Buffer.byteLength(text) + 512;

async function kept(): Promise<Record<string, string>> {
  return store.hash(store.keys.answers[0] as string);
}

/** The ids of the answers that are kept. The counts beside them have to be right. */
async function ids(of: readonly string[]): Promise<string[]> {
  const { bytes = '0', ...fields } = await kept();
  const answers = Object.entries(fields).filter(([name]) => !of.includes(name));
  const size = answers.reduce((sum, [, text]) => sum + sizeOf(text), 0);
  expect(Number(bytes)).toBe(size);
  expect(of.reduce((sum, account) => sum + Number(fields[account] ?? 0), 0)).toBe(size);
  return answers.map(([id]) => id);
}

async function keepAll(answers: Answers, account: string, texts: readonly (Buffer | string)[]): Promise<string[]> {
  const made: string[] = [];
  for (const text of texts) {
    const id = uuidv7();
    made.push(id);
    expect(answers.keep(account, id, answerOf(text))).toBe(true);
    await answers.drain();
  }
  return made;
}

describe('an answer that is kept', () => {
  it('keeps its bytes, whatever they are', () => {
    const property = fc.property(
      fc.oneof(fc.uint8Array({ maxLength: 200 }), anyText({ maxLength: 100 }).map(Buffer.from)),
      fc.record({ status: fc.nat(599), lines: fc.string(), isAscii: fc.boolean(), contentLength: fc.integer() }),
      (body, head) => {
        const answer = { ...head, hasBody: true, body: Buffer.from(body) };
        expect(decodeAnswer(encodeAnswer(answer))).toEqual(answer);
      },
    );
    fc.assert(property);
    for (const text of ['', '{}', 'x', '{"status":200}\nx', '[]\n', 'null\n']) expect(decodeAnswer(text)).toBeNull();
  });

  it('is found in Redis by the claim of its call', async () => {
    const answers = answersOf();
    const [account] = accounts(1) as [string];
    for (const body of [randomBytes(2_000), 'text \u{1f600}', '', '\ufeffmark']) {
      const [id] = await keepAll(answers, account, [body]);
      const now = await store.now();
      await store.command('hset', store.keys.claims(0, account), 'name', `k\t${id}\t${now}\ttarget\tdigest\t2\t10`);
      expect(await answers.find(account, 'name')).toEqual({
        isUnderWay: false,
        usageId: id,
        target: 'target',
        bodyDigest: 'digest',
        amountMicros: 10,
        answer: answerOf(body),
      });
    }
    expect(await answers.find(account, 'other')).toBeNull();
  });

  it('does not exist for a call under way; a call without its hold counts as charged, with its answer lost', async () => {
    const [answers, [account], id] = [answersOf(), accounts(1) as [string], uuidv7()];
    const since = await store.now();
    await store.command('hset', store.keys.claims(0, account), 'name', `o\t${id}\t${since}\ttarget\t-\t0`);
    await store.command('hset', store.keys.open[0] as string, id, 'v1\t');
    expect(await answers.find(account, 'name')).toEqual({ isUnderWay: true, target: 'target' });
    await store.command('hdel', store.keys.open[0] as string, id);
    const lost = { usageId: id, target: 'target', bodyDigest: null, amountMicros: null, answer: null };
    expect(await answers.find(account, 'name')).toEqual({ isUnderWay: false, ...lost });
  });
});

describe('the first call', () => {
  const hour = 3_600_000;
  it.each([
    ['is under way while it has a hold', 'o', { age: 0, chargedAgo: 0, hold: true }, { isUnderWay: true }],
    ['is under way while its answer may still come', 'k', { age: hour, chargedAgo: 1_000 }, { isUnderWay: true }],
    [
      'is charged if its answer did not come',
      'k',
      { age: hour, chargedAgo: 10_000 },
      { answer: null, amountMicros: 7 },
    ],
    ['is charged if its hold is gone, with an unknown amount', 'o', { age: 0, chargedAgo: 0 }, { amountMicros: null }],
    ['does not count after a day', 'n', { age: 24 * hour, chargedAgo: hour }, null],
    ['counts until a day has passed', 'n', { age: 24 * hour - 60_000, chargedAgo: hour }, { isUnderWay: false }],
  ] as const)('%s', async (_, state, { age, chargedAgo, ...more }, expected) => {
    const [account] = accounts(1) as [string];
    const [id, now] = [uuidv7(), await store.now()];
    if ('hold' in more) await store.command('hset', store.keys.open[0] as string, id, 'v1');
    const end = state === 'o' ? ['-', '0'] : ['digest', now - chargedAgo, '7'];
    const text = [state, id, now - age, 'target', ...end].join('\t');
    await store.command('hset', store.keys.claims(0, account), 'name', text);
    const found = await answersOf().find(account, 'name');
    if (expected === null) expect(found).toBeNull();
    else expect(found).toMatchObject(expected);
  });
});

describe('answers', () => {
  it('of an account are the last 1 000 and at most 8 MiB, and only its own answers make room', async () => {
    const answers = answersOf();
    const [one, other] = accounts(2) as [string, string];
    const few = await keepAll(answers, other, ['of another account']);
    const many = await keepAll(
      answers,
      one,
      Array.from({ length: 1_003 }, (_, i) => String(i)),
    );
    expect((await ids([one, other])).sort()).toEqual([...few, ...many.slice(3)].sort());
    const large = await keepAll(
      answers,
      one,
      Array.from({ length: 300 }, () => 'x'.repeat(32_000)),
    );
    const left = await ids([one, other]);
    const bytes = Number((await kept())[one]);
    expect(bytes).toBeLessThanOrEqual(8_388_608);
    expect(bytes).toBeGreaterThan(8_388_608 - 33_000);
    expect(left).toContain(few[0]);
    expect(left).toContain(large.at(-1));
    expect(left).not.toContain(large[0]);
    expect(answers.notKept.get('no_room')).toBe(0);
  });

  it('older than a day make room in the shard, whichever account they belong to', async () => {
    const answers = answersOf({ maxBytes: SHARDS * 3_500 });
    const [one, other] = accounts(2) as [string, string];
    const [old] = (await keepAll(answers, one, ['x'.repeat(2_000)])) as [string];
    await keepAll(answers, other, ['y'.repeat(2_000)]);
    expect(answers.notKept.get('no_room')).toBe(1);
    expect(await ids([one, other])).toEqual([old]);
    const times = store.keys.answerTimes[0] as string;
    await store.command('zadd', times, await dayAgo(), `${old} ${one}`);
    const [next] = await keepAll(answers, other, ['y'.repeat(2_000)]);
    expect(await ids([one, other])).toEqual([next]);
    expect(await store.command('zrange', times, 0, -1)).toEqual([`${next} ${other}`]);
    for (const name of [times, store.keys.answers[0] as string, store.keys.answersOf(0, other)]) {
      expect(await store.command('pttl', name)).toBeGreaterThan(DAY_MS - 60_000);
    }
    // What the index of the first account still has of it goes with its next answer.
    await store.command('zadd', store.keys.answersOf(0, one), await dayAgo(), old);
    const [last] = await keepAll(answers, one, ['x']);
    expect(await store.command('zrange', store.keys.answersOf(0, one), 0, -1)).toEqual([last]);
  });

  it('are not kept while Redis is full or nearly full, or beyond the memory limit of the process', async () => {
    const [account] = accounts(1) as [string];
    expect(answersOf({ share: 0.71 }).keep(account, uuidv7(), answerOf('x'))).toBe(false);
    expect(answersOf({ share: 0.7 }).keep(account, uuidv7(), answerOf('x'))).toBe(true);
    const full = answersOf();
    await store.command('config', 'set', 'maxmemory', 1);
    full.keep(account, uuidv7(), answerOf('x'));
    await full.drain();
    expect([full.kept, full.notKept.get('failed')]).toEqual([0, 1]);
    const crowded = answersOf();
    expect(crowded.capture(67_108_864)).toBe(true);
    expect(crowded.capture(1)).toBe(false);
    expect(crowded.keep(account, uuidv7(), answerOf('x'))).toBe(false);
    crowded.capture(-1);
    expect(crowded.capture(1)).toBe(true);
  });
});

type Kept = { readonly id: string; readonly account: string; readonly size: number; isOld: boolean };

const AGE = `for _, key in ipairs(KEYS) do
  local members = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #members, 2 do redis.call('ZADD', key, string.format('%d', members[i + 1] - ARGV[1]), members[i]) end
end`;

it('after any flood of answers, the kept ones are the newest that the limits of accounts and of the shard allow', async () => {
  const owners = accounts(3);
  const [answers, times] = [store.keys.answers[0] as string, store.keys.answerTimes[0] as string];
  const indexes = owners.map((account) => store.keys.answersOf(0, account));
  const [most, accountBytes, shardBytes] = [3, 2_200, 4_000];
  const reached = { most: 0, account: 0, shard: 0 };
  const step = fc.record({ by: fc.nat(2), length: fc.constantFrom(1, 1, 50, 400, 900), isNextDay: fc.nat(9) });
  const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
    await store.command('flushall');
    let left: Kept[] = [];
    for (const { by, length, isNextDay } of steps) {
      if (isNextDay === 0) {
        await store.command('eval', AGE, 4, times, ...indexes, (DAY_MS + 1) * 1_000);
        for (const answer of left) answer.isOld = true;
      }
      const [id, account] = [uuidv7(), owners[by] as string];
      const size = sizeOf('x'.repeat(length));
      const bytesOf = (some: readonly Kept[]) => some.reduce((sum, answer) => sum + answer.size, 0);
      left = left.filter(({ isOld }) => !isOld);
      const own = left.filter((answer) => answer.account === account);
      while (own.length >= most || bytesOf(own) + size > accountBytes) {
        reached[own.length >= most ? 'most' : 'account']++;
        left = left.filter((answer) => answer !== own[0]);
        own.shift();
      }
      const fits = bytesOf(left) + size <= shardBytes;
      if (fits) left.push({ id, account, size, isOld: false });
      else reached.shard++;
      const names = [answers, times, indexes[by] as string];
      const args = [id, account, 'x'.repeat(length), ...[most, accountBytes, shardBytes].map(String)];
      expect(await store.redis.script(keepAnswerScript, 3, [...names, ...args])).toBe(fits ? 1 : 0);
      expect((await ids(owners)).sort()).toEqual(left.map((answer) => answer.id).sort());
      expect(await store.command('zcard', times)).toBe(left.length);
    }
  });
  await fc.assert(property, { numRuns: 25, seed: 29 });
  expect(Math.min(...Object.values(reached)), 'each bound is met').toBeGreaterThan(5);
});

describe('a claim', () => {
  it('has a different name for another API key or value, and a different target for another method, path or query', () => {
    const called = { method: 'GET', path: '/a', query: undefined };
    const claim = claimOf('key', 'value', called);
    expect(claimOf('key', 'value', { ...called })).toEqual(claim);
    expect(claim.name).toMatch(/^[\w-]{22}$/);
    for (const [key, value] of [
      ['key2', 'value'],
      ['key', 'value2'],
      ['keyv', 'alue'],
    ] as const) {
      expect(claimOf(key, value, called).name).not.toBe(claim.name);
    }
    for (const other of [{ method: 'PUT' }, { path: '/b' }, { query: '' }, { path: '/', query: 'a' }]) {
      const { name, target } = claimOf('key', 'value', { ...called, ...other });
      expect([name, target === claim.target]).toEqual([claim.name, false]);
    }
  });

  it.each([
    ['a', 'a'],
    ['"a"', 'a'],
    ['a"b', 'a"b'],
    ['a"', 'a"'],
    ['"a', null],
    ['""', null],
    ['', null],
    ['"a"b"', null],
    ['a b', null],
    ['"a b"', null],
    ['~'.repeat(255), '~'.repeat(255)],
    ['~'.repeat(256), null],
    [`"${'~'.repeat(256)}"`, null],
  ])('of %j has the key %j', (value, key) => {
    expect(readIdempotencyKey(value)).toBe(key);
  });
});
