import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Random, seeded } from '../fuzz/random.ts';
import { Marketplace } from '../integration/marketplace.ts';
import { agreed, NEVER_PASSED, strictRequests, usageIdOf } from './audit.ts';
import { CALLER_CORPUS } from './callers/corpus.ts';
import { BASE_PATH, HostileCaller } from './hostile-caller.ts';
import { hasNginx, NginxReader } from './nginx.ts';
import { Witness } from './witness.ts';

const PRICE_MICROS = 1;
/** `FUZZ_SEED=7 npx vitest run test/conformance` splits every case at other positions. */
const SEED = Number(process.env.FUZZ_SEED ?? 1);
/** Depends on the case's name, so a case is split at the same positions whether it runs alone or with all others. */
const randomOf = (name: string): Random => seeded(SEED + crc32(name));

let market: Marketplace;
let witness: Witness;
let hostile: HostileCaller;

beforeAll(async () => {
  market = await Marketplace.start();
  witness = await Witness.open();
  const path = await market.service({ endpoint: witness.url + BASE_PATH, price: PRICE_MICROS / 1e6 });
  hostile = new HostileCaller(market, witness, path, await market.buyer(1));
});
afterAll(async () => {
  await market.stop();
  await witness.close();
});

describe.each(CALLER_CORPUS)('hostile callers: $name', ({ cases }) => {
  const named = cases.map((one) => [one.name, one] as const);
  const followed = named.filter(([, { rest }]) => rest !== undefined);

  it.each(named)('%s', async (_name, one) => {
    const seen = await hostile.run(one, 'at once', randomOf(one.name));
    expect(hostile.fault(one.allowed, seen), JSON.stringify(seen)).toBeNull();
  });

  it.each(followed)('%s, followed by the rest after the answer', async (_name, one) => {
    const seen = await hostile.run(one, 'after the answer', randomOf(one.name));
    expect(hostile.fault(one.allowed, seen), JSON.stringify(seen)).toBeNull();
  });

  it.each(named)(`%s, split (seed ${SEED})`, async (_name, one) => {
    const seen = await hostile.run(one, 'split', randomOf(one.name));
    expect(hostile.fault(one.allowed, seen), JSON.stringify(seen)).toBeNull();
  });
});

// These tests look at the traces of all cases above together.
describe('after all hostile callers', () => {
  it('the gateway still serves', async () => {
    expect(await hostile.ask('alive')).toBe(200);
  });

  it('every request that reached the service was valid for llhttp, and a strict reader finds the same requests', () => {
    expect(witness.faults).toEqual([]);
    const strict = strictRequests(witness);
    expect(strict.length).toBeGreaterThan(300);
    expect(agreed(witness.seen.map((seen) => ({ ...seen, target: seen.url })))).toEqual(
      agreed(strict.map((request) => ({ ...request, usageId: usageIdOf(request) }))),
    );
  });

  it('no request reached a path outside the endpoint, or had a header that the gateway must not forward', () => {
    for (const { target, headers } of strictRequests(witness)) {
      expect(target.startsWith(`${BASE_PATH}/`), target).toBe(true);
      // The path as a server sees it that first decodes and then resolves dot segments.
      const [path = ''] = target.split('?');
      const decoded = path.replace(/%([0-9a-f]{2})/gi, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
      const resolved = new URL(`http://x${encodeURI(decoded.replaceAll('\\', '/')).replaceAll('%25', '%')}`).pathname;
      expect(resolved.startsWith(BASE_PATH), `${target} → ${resolved}`).toBe(true);
      expect(headers.map(([name]) => name).filter((name) => NEVER_PASSED.includes(name))).toEqual([]);
    }
  });

  it('every request that reached the service has one call and one record, and is charged or refunded', async () => {
    const forwarded = witness.seen.map(({ usageId }) => usageId);
    expect(new Set(forwarded).size).toBe(forwarded.length);
    await market.settled();
    const calls = await market.stores.sql<{ id: string; outcome: string; amount: number }[]>`
      SELECT usage_id AS id, outcome, amount::int AS amount FROM calls`;
    const outcomes = new Map(calls.map((call) => [call.id, call]));
    expect(outcomes.size).toBe(calls.length);
    for (const id of forwarded) expect(outcomes.get(id)).toMatchObject({ outcome: 'completed', amount: PRICE_MICROS });
    const unforwarded = calls.filter(({ id }) => !forwarded.includes(id));
    // The body never arrived whole: the caller left, or was refused, before the request was forwarded.
    for (const { outcome } of unforwarded) expect(outcome).toMatch(/^refunded:(caller_gone|payload_too_large)$/);
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });

  it('the log contains no unprintable character and no key', () => {
    const text = market.log.lines.join('\n');
    for (const { secret } of hostile.keys) expect(text).not.toContain(secret);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the log must not contain these
    expect(text.replaceAll('\n', '')).not.toMatch(/[\x00-\x1f\x7f]/);
  });

  it.skipIf(!hasNginx())(
    'nginx reads each request as one request, or refuses it (skipped where nginx is not installed)',
    async () => {
      const nginx = await NginxReader.start(witness.url);
      try {
        const different = new Map(strictRequests(witness).map((request) => [shapeOf(request), request]));
        expect(different.size).toBeGreaterThan(50);
        for (const [shape, { raw, method, target }] of different) {
          const [first, ...rest] = await nginx.read(raw);
          if (first?.status === 400) {
            // nginx refuses some targets and then ends the connection.
            expect(rest, shape).toEqual([]);
            expect(isDoubtfulTarget(target), `${shape} ${JSON.stringify(first)}`).toBe(true);
            continue;
          }
          expect([first?.method, first?.target, first?.bytes], shape).toEqual([method, target, raw.length]);
          expect(
            rest.map((request) => request.target),
            shape,
          ).toEqual(['/last']);
        }
      } finally {
        await nginx.stop();
      }
    },
  );
});

/** What makes two requests different kinds: everything but their number and usage id. */
function shapeOf({ raw }: { readonly raw: Buffer }): string {
  return raw
    .toString('latin1')
    .replace(/(probe-|evil-)?c\d+-/g, '$1c')
    .replace(/usage-id: \S+/, '');
}

/** Targets that nginx refuses by its own rules: broken percent-encoding, and NUL. */
const isDoubtfulTarget = (target: string): boolean => /%(?![0-9a-f]{2})|%00/i.test(target);
