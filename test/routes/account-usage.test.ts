import fc from 'fast-check';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import { BalanceRefusals } from '../../src/keys/balance-refusals.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { MAX_TAGS } from '../../src/ledger/rollups/tag-sums.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { usageRoutes } from '../../src/routes/usage.ts';
import { accepts, addAccount, addCall, addKeyTo, findRoute, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const MIDNIGHT = Date.UTC(2026, 0, 15);
const HOUR_MS = 3_600_000;
const services = [uuidv7(), uuidv7(), uuidv7()];

let routes: Route[];
/** root → (agent → (helper → leaf), sibling), and a second root. */
let keys: Record<'root' | 'agent' | 'helper' | 'leaf' | 'sibling' | 'second', KeyRecord>;
let stranger: KeyRecord;
type Name = keyof typeof keys;

/** Whose calls each key sees. */
const SEEN: Readonly<Record<Name, readonly Name[]>> = {
  root: ['root', 'agent', 'helper', 'leaf', 'sibling', 'second'],
  second: ['root', 'agent', 'helper', 'leaf', 'sibling', 'second'],
  agent: ['agent', 'helper', 'leaf'],
  helper: ['helper', 'leaf'],
  leaf: ['leaf'],
  sibling: ['sibling'],
};
const NAMES = Object.keys(SEEN) as Name[];

useDatabase();
beforeAll(async () => {
  routes = usageRoutes({ sql });
  const root = await addAccount(sql, 'buyer', 'alice');
  const under = (parent: KeyRecord, label?: string) =>
    addKeyTo(sql, root.accountId, 'buyer', 'alice', { under: parent, ...(label === undefined ? {} : { label }) });
  const agent = await under(root, 'research');
  const helper = await under(agent, 'research: pages');
  const leaf = await under(helper);
  const second = await addKeyTo(sql, root.accountId, 'buyer', 'alice', { label: 'laptop' });
  keys = { root, agent, helper, leaf, sibling: await under(root, 'billing'), second };
  stranger = await addAccount(sql, 'buyer', 'alice');
});
const removeCalls = () => emptyDatabase(sql, ['accounts', 'api_keys', 'services']);
beforeEach(async () => {
  await removeCalls();
  await sql`UPDATE installation SET days_summed_to = now()`;
});

const usage = async (by: KeyRecord, query: object = {}) =>
  json(await send(routes, 'GET /usage', { by, query: query as Record<string, unknown> }));
const call = (by: KeyRecord, fields: Partial<Parameters<typeof addCall>[1]> = {}) =>
  addCall(sql, { buyer: by, serviceId: services[0] as string, atMs: MIDNIGHT, ...fields });
const idsOf = (page: { records: { usage_id: string }[] }) => page.records.map(({ usage_id }) => usage_id);

type Call = {
  readonly id: string;
  readonly by: Name;
  readonly service: string;
  readonly atMs: number;
  readonly amount: number;
  readonly isCounted: boolean;
  readonly tag: string | null;
};

const TAGS = ['a', 'b', 'c', 'other'];
/** How many of them have sums in the month. */
const ROOM = 2;

const moment = fc
  .tuple(fc.nat(3), fc.constantFrom(0, 0, 1, 23), fc.constantFrom(0, 0, 1, 1_800_000, 3_599_999))
  .map(([day, hour, ms]) => MIDNIGHT + (day * 24 + hour) * HOUR_MS + ms);
const anyCall = fc
  .record({
    by: fc.constantFrom(...NAMES),
    service: fc.constantFrom(...services),
    atMs: moment,
    amount: fc.nat(5_000),
    isCounted: fc.constantFrom(true, true, true, false),
    tag: fc.constantFrom(null, ...TAGS),
  })
  .map((made) => (made.isCounted ? made : { ...made, amount: 0 }));
const anyQuery = fc.record({
  by: fc.constantFrom(...NAMES),
  of: fc.option(fc.constantFrom(...NAMES), { freq: 2 }),
  service: fc.option(fc.constantFrom(...services)),
  bounds: fc.tuple(fc.option(moment), fc.option(moment)),
  limit: fc.constantFrom(1, 3, 100),
  tag: fc.option(fc.constantFrom(...TAGS), { freq: 2 }),
});

/** Sums of calls under each name, those that spent the most first. */
function sumsBy(calls: readonly Call[], nameOf: (call: Call) => string) {
  const names = [...new Set(calls.map(nameOf))];
  return names
    .map((name) => {
      const of = calls.filter((one) => nameOf(one) === name);
      const micros = of.reduce((sum, { amount }) => sum + amount, 0);
      return { name, calls: of.length, spent: micros / 1e6, free_calls: 0 };
    })
    .sort((a, b) => b.spent - a.spent || b.calls - a.calls || (a.name < b.name ? -1 : 1));
}

const dayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);

it('a page of records is complete, whether each key called once or one key made nearly all calls', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 24; i++) {
    const by = i % 6 === 0 ? keys.agent : i % 4 === 0 ? keys.sibling : keys.root;
    ids.unshift(await call(by, { atMs: MIDNIGHT + i }));
  }
  for (const limit of [1, 4, 10, 23]) {
    const first = await usage(keys.root, { limit });
    expect(idsOf(first)).toEqual(ids.slice(0, limit));
    expect(idsOf(await usage(keys.root, { limit: 100, cursor: first.next_cursor }))).toEqual(ids.slice(limit));
  }
});

it('refusals for lack of money are shown by key: the last one of each key, with their number on its day', async () => {
  const log = { warn: () => {}, info: () => {} };
  let nowMs = MIDNIGHT - 1_000;
  const gateways = [0, 1].map(() => new BalanceRefusals({ sql, log, now: () => nowMs })) as [
    BalanceRefusals,
    BalanceRefusals,
  ];
  const refuse = (by: KeyRecord, requiredMicros: number, gateway = gateways[0]) =>
    gateway.count({ keyId: by.keyId, accountId: by.accountId, serviceId: services[0] as string, requiredMicros });
  expect(await usage(keys.root)).not.toHaveProperty('refused');
  refuse(keys.agent, 100, gateways[1]);
  refuse(keys.agent, 200);
  nowMs = MIDNIGHT;
  for (const micros of [300, 400]) refuse(keys.agent, micros);
  nowMs += 5_000;
  refuse(keys.second, 7);
  refuse(stranger, 1);
  // The other one is late, and has a call of the day before.
  for (const gateway of gateways) await gateway.stop();
  refuse(keys.agent, 500, gateways[1]);
  await gateways[1].stop();
  const agent = {
    key_id: keys.agent.keyId,
    label: 'research',
    service_id: services[0],
    service_name: '',
    required: 0.0005,
    at: '2026-01-15T00:00:05.000Z',
    calls: 3,
  };
  const second = { ...agent, key_id: keys.second.keyId, label: 'laptop', required: 0.000007, calls: 1 };
  const byId = [agent, second].sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
  expect((await usage(keys.root)).refused).toEqual(byId);
  expect((await usage(keys.agent)).refused).toEqual([agent]);
  expect((await usage(keys.root, { key_id: keys.second.keyId })).refused).toEqual([second]);
  for (const query of [{ to: '2026-01-15' }, { from: '2026-01-16' }, { service_id: services[1] }]) {
    expect(await usage(keys.root, query)).not.toHaveProperty('refused');
  }
  expect(await usage(keys.leaf)).not.toHaveProperty('refused');
});

it('an account with very many keys has the same pages whether or not its calls are among the newest of all accounts', async () => {
  const owner = await addAccount(sql, 'buyer');
  await sql`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash)
    SELECT 'acf_many' || lpad(i::text, 18, '0'), ${owner.accountId}, 'buyer', ${'0'.repeat(64)} FROM generate_series(1, 200) AS i`;
  const keyOf = (i: number): KeyRecord => ({ ...owner, keyId: `acf_many${String(i).padStart(18, '0')}` });
  const ids: string[] = [];
  for (let i = 0; i < 12; i++) {
    ids.unshift(await call(keyOf(1 + (i % 5)), { atMs: MIDNIGHT + i, serviceId: services[i % 2] as string }));
    await call(stranger, { atMs: MIDNIGHT + i });
  }
  const to = new Date(MIDNIGHT + HOUR_MS).toISOString();
  const expectPages = async () => {
    for (const limit of [1, 5, 11, 12, 13]) {
      const first = await usage(owner, { limit, to });
      expect(idsOf(first)).toEqual(ids.slice(0, limit));
      if (limit < 12) expect(idsOf(await usage(owner, { cursor: first.next_cursor }))).toEqual(ids.slice(limit));
    }
    const odd = ids.filter((_, i) => i % 2 === 0);
    expect(idsOf(await usage(owner, { to, limit: 2, service_id: services[1] }))).toEqual(odd.slice(0, 2));
    expect(idsOf(await usage(owner, { to: new Date(MIDNIGHT + 6).toISOString(), limit: 2 }))).toEqual(ids.slice(6, 8));
    expect(idsOf(await usage(owner, { to, limit: 2, outcome: 'refunded' }))).toEqual([]);
  };
  await expectPages();
  // As many newer calls of another account as are looked through.
  await sql`
    INSERT INTO calls SELECT (to_timestamp(${MIDNIGHT / 1000}) AT TIME ZONE 'UTC')::date, (substr(usage_id::text, 1, 15) || 'fff-bfff-' || lpad(to_hex(i), 12, '0'))::uuid,
      account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier, outcome, latency_us, request_bytes,
      response_bytes, created_at, journal_id
    FROM (SELECT * FROM calls WHERE account_id = ${stranger.accountId} ORDER BY usage_id DESC LIMIT 1) AS newest, generate_series(1, 400) AS i`;
  await expectPages();
});

it('sums and records are those of the calls that the key may see and that the filters select', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyCall, { maxLength: 14 }),
      fc.array(anyQuery, { minLength: 3, maxLength: 8 }),
      fc.option(fc.constantFrom('2026-01-10', '2026-01-16', '2026-01-17', '2026-01-20'), { freq: 4 }),
      fc.nat(96),
      async (made, queries, summedFrom, hoursInDays) => {
        await removeCalls();
        await sql`UPDATE installation SET days_summed_to = ${new Date(MIDNIGHT + hoursInDays * HOUR_MS)}`;
        await sql`
          INSERT INTO tag_months (account_id, month, tag)
          SELECT ${keys.root.accountId}, '2026-01-01', 'taken-' || i FROM generate_series(1, ${MAX_TAGS - ROOM}::int) AS i`;
        // Null: an account with few keys. Otherwise its sums begin with one of the days, or before or after them.
        await sql`UPDATE accounts SET summed_from = ${summedFrom} WHERE id = ${keys.root.accountId}`;
        await call(stranger, { amount: 77 });
        const calls: Call[] = [];
        for (const one of made) {
          const path = one.isCounted ? '/x' : '/mcp#ping';
          calls.push({ ...one, id: await call(keys[one.by], { ...one, serviceId: one.service, path }) });
        }
        const summed = tagsWithSums(calls);
        for (const { by, of, service, bounds, limit, tag } of queries) {
          const [fromMs, toMs] = [...bounds].sort((a, b) => (a ?? 0) - (b ?? Number.MAX_VALUE)) as typeof bounds;
          if (fromMs !== null && fromMs === toMs) continue;
          const query = {
            ...(of === null ? {} : { key_id: keys[of].keyId }),
            ...(service === null ? {} : { service_id: service }),
            ...(fromMs === null ? {} : { from: new Date(fromMs).toISOString() }),
            ...(toMs === null ? {} : { to: new Date(toMs).toISOString() }),
            ...(tag === null ? {} : { tag }),
          };
          if (of !== null && !SEEN[by].includes(of)) {
            await expect(usage(keys[by], query)).rejects.toMatchObject({ code: 'not_found' });
            continue;
          }
          const seen = calls.filter(
            (one) =>
              (of === null ? SEEN[by].includes(one.by) : one.by === of) &&
              (service === null || one.service === service) &&
              one.atMs >= (fromMs ?? 0) &&
              one.atMs < (toMs ?? Number.MAX_VALUE),
          );
          const hasTagSums = of === null && service === null && SEEN[by].length === NAMES.length;
          const isOfDays = [fromMs, toMs].every((ms) => ms === null || ms % (24 * HOUR_MS) === 0);
          const summedAs = (one: Call) => (one.tag === null ? null : summed.has(one.tag) ? one.tag : 'other');
          const page =
            tag !== null && hasTagSums
              ? await expectSumsOfTag(
                  by,
                  { ...query, limit },
                  tag,
                  seen.filter((one) => summedAs(one) === tag),
                )
              : await expectSums(by, { ...query, limit }, seen);
          const tags = sumsBy(
            seen.filter((one) => one.isCounted && one.tag !== null && (tag === null || summedAs(one) === tag)),
            (one) => summedAs(one) as string,
          );
          if (hasTagSums && (isOfDays || tag !== null)) expect(page.by_tag.map(namedBy('tag'))).toEqual(tags);
          else expect(page).not.toHaveProperty('by_tag');
          const isListed = (one: Call) =>
            tag === null || one.tag === tag || (tag === 'other' && one.isCounted && summedAs(one) === tag);
          const found = [...idsOf(page)];
          for (let next = page.next_cursor; next !== null; ) {
            const more = await usage(keys[by], { ...query, limit, cursor: next });
            found.push(...idsOf(more));
            next = more.next_cursor;
          }
          expect(found).toEqual(
            seen
              .filter(isListed)
              .map(({ id }) => id)
              .sort()
              .reverse(),
          );
        }
      },
    ),
    { numRuns: 15 },
  );
});

it('a day has the sums of its hours that are not in it yet, also for a child key of an account with sums of its own', async () => {
  await sql`UPDATE accounts SET summed_from = '2026-01-15' WHERE id = ${keys.root.accountId}`;
  await sql`UPDATE installation SET days_summed_to = ${new Date(MIDNIGHT + HOUR_MS)}`;
  await call(keys.agent, { amount: 1 });
  await call(keys.helper, { atMs: MIDNIGHT + HOUR_MS, amount: 20 });
  await call(keys.leaf, { atMs: MIDNIGHT + 5 * HOUR_MS, amount: 300 });
  const page = await usage(keys.agent, { from: '2026-01-15', to: '2026-01-16' });
  for (const list of [page.by_service, page.by_day]) expect(list).toMatchObject([{ calls: 3, spent: 321 / 1e6 }]);
});

it('by_tag has all tags of a month, and one sum for the tags that had no room', async () => {
  await removeCalls();
  const sums = sql`'2026-01-16'::date, tag, 1, 0, spent, 0, 0`;
  await sql`
    INSERT INTO tag_days (account_id, day, tag, calls, free_calls, spent, latency_sum_us, latency_count)
    SELECT ${keys.root.accountId}::uuid, ${sums} FROM (
      SELECT 'tag-' || i AS tag, 1000 + i AS spent FROM generate_series(1, ${MAX_TAGS}::int) AS i
      UNION ALL SELECT 'other', 1
    ) AS t`;
  const { by_tag: tags } = await usage(keys.root, { from: '2026-01-01', to: '2026-02-01' });
  expect(tags).toHaveLength(MAX_TAGS + 1);
  expect([tags[0], tags.at(-1)]).toMatchObject([
    { tag: `tag-${MAX_TAGS}`, spent: 0.002 },
    { tag: 'other', spent: 0.000001 },
  ]);
});

/** The tags that have sums of their own: of counted calls, the first that there is room for. */
function tagsWithSums(calls: readonly Call[]): Set<string | null> {
  const tags = calls.filter(({ isCounted, tag }) => isCounted && tag !== null && tag !== 'other').map(({ tag }) => tag);
  return new Set([...new Set(tags)].slice(0, ROOM));
}

const namedBy =
  (field: string) =>
  ({ [field]: name, calls, spent, free_calls }: Record<string, unknown>) => ({ name, calls, spent, free_calls });

async function expectSumsOfTag(by: Name, query: object, tag: string, seen: readonly Call[]) {
  const page = await usage(keys[by], query);
  const counted = seen.filter(({ isCounted }) => isCounted);
  const [sums = { calls: 0, spent: 0 }] = sumsBy(counted, () => tag);
  expect([page.total_calls, page.total_spent]).toEqual([sums.calls, sums.spent]);
  const days = sumsBy(counted, ({ atMs }) => dayOf(atMs)).sort((a, b) => (a.name < b.name ? 1 : -1));
  expect(page.by_day.map(namedBy('day'))).toEqual(days);
  expect([page.by_service, page.by_key]).toEqual([[], []]);
  return page;
}

async function expectSums(by: Name, query: object, seen: readonly Call[]) {
  const page = await usage(keys[by], query);
  const counted = seen.filter(({ isCounted }) => isCounted);
  const spent = counted.reduce((sum, { amount }) => sum + amount, 0) / 1e6;
  expect([page.total_calls, page.total_spent]).toEqual([counted.length, spent]);
  const keyIdOf = ({ by: name }: Call): string => keys[name].keyId;
  const byKey = sumsBy(counted, keyIdOf);
  const named = namedBy('key_id');
  expect(page.by_key.map(named)).toEqual(byKey);
  const services = sumsBy(counted, ({ service }) => service);
  expect(page.by_service.map((its: { service_id: string }) => ({ service_id: its.service_id }))).toEqual(
    services.map(({ name }) => ({ service_id: name })),
  );
  const days = sumsBy(counted, ({ atMs }) => dayOf(atMs)).sort((a, b) => (a.name < b.name ? 1 : -1));
  expect(page.by_day.map(namedBy('day'))).toEqual(days);
  for (const { day, by_key } of page.by_day) {
    const ofDay = sumsBy(
      counted.filter(({ atMs }) => dayOf(atMs) === day),
      keyIdOf,
    );
    expect(by_key.map(named)).toEqual(ofDay);
  }
  return page;
}

it('sums, records and files name keys with their labels and parents', async () => {
  await call(keys.helper, { amount: 3_000 });
  await call(keys.root, { amount: 2_000, atMs: MIDNIGHT - 1 });
  const page = await usage(keys.second);
  expect(page).toMatchObject({ account_id: keys.root.accountId, owner_id: 'alice', key_id: null, total_spent: 0.005 });
  expect(page.by_key).toMatchObject([
    { key_id: keys.helper.keyId, label: 'research: pages', parent_key_id: keys.agent.keyId, avg_latency_ms: 1.5 },
    { key_id: keys.root.keyId, label: null, parent_key_id: null },
  ]);
  const [ofHelper, ofRoot] = page.records;
  expect(ofHelper).toMatchObject({ key_id: keys.helper.keyId, key_label: 'research: pages' });
  expect(ofRoot.key_id).toBe(keys.root.keyId);
  expect(ofRoot).not.toHaveProperty('key_label');
  const file = await send(routes, 'GET /usage', { by: keys.second, query: {}, headers: { accept: 'text/csv' } });
  const lines = String(file.body)
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','));
  const column = lines[0]?.indexOf('key_label') as number;
  expect(lines.map((cells) => cells[column])).toEqual(['key_label', 'research: pages', '']);
});

it('each day names the eight keys that spent the most in the whole range, and its sums are those of all keys', async () => {
  const owner = await addAccount(sql, 'buyer');
  const many = [owner];
  for (let i = 0; i < 9; i++) many.push(await addKeyTo(sql, owner.accountId, 'buyer', 'owner', { under: owner }));
  for (const [i, by] of many.entries()) {
    await call(by, { amount: 100 + 3 * i });
    // On the second day the order is another: it does not matter.
    await call(by, { amount: 20 - i, atMs: MIDNIGHT + 24 * HOUR_MS });
  }
  const expectMost = async () => {
    const { by_key, by_day } = await usage(owner);
    expect(by_key).toHaveLength(10);
    for (const [at, spent] of [155, 1_135].entries()) {
      expect([by_day[at].calls, by_day[at].spent]).toEqual([10, spent / 1e6]);
      const ofDay = many.slice(2).map(({ keyId }, i) => [keyId, at === 0 ? 18 - i : 106 + 3 * i] as const);
      const shown = by_day[at].by_key.map((its: { key_id: string; spent: number }) => [its.key_id, its.spent * 1e6]);
      expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(ofDay));
    }
  };
  await expectMost();
  // The same from the sums by account.
  await sql`UPDATE accounts SET summed_from = '2026-01-01' WHERE id = ${owner.accountId}`;
  await sql`TRUNCATE account_days, account_key_days`;
  await sql.unsafe(`
    INSERT INTO account_key_days (account_id, day, key_id, calls, free_calls, spent, latency_sum_us, latency_count)
    SELECT account_id, day, key_id, sum(calls), sum(free_calls), sum(spent), sum(latency_sum_us), sum(latency_count) FROM key_days GROUP BY 1, 2, 3;
    INSERT INTO account_days (account_id, day, service_id, calls, free_calls, spent, latency_sum_us, latency_count)
    SELECT account_id, day, service_id, sum(calls), sum(free_calls), sum(spent), sum(latency_sum_us), sum(latency_count) FROM key_days GROUP BY 1, 2, 3`);
  await expectMost();
});

it('a child key sees individual calls, to any seller, made by itself and the keys below it, and no others', async () => {
  const ids = new Map<Name, string>();
  for (const name of NAMES) ids.set(name, await call(keys[name], { amount: 5, providerId: keys.root.accountId }));
  for (const by of NAMES) {
    for (const name of NAMES) {
      const read = send(routes, 'GET /usage/:usage_id', {
        by: keys[by],
        params: { usage_id: ids.get(name) as string },
      });
      if (!SEEN[by].includes(name))
        await expect(read, `${by} reads ${name}`).rejects.toMatchObject({ code: 'not_found' });
      else expect(json(await read)).toMatchObject({ usage_id: ids.get(name), key_id: keys[name].keyId });
    }
  }
});

it('a key of another account is not found, and an invalid key id is refused', async () => {
  await expect(usage(keys.root, { key_id: stranger.keyId })).rejects.toMatchObject({ code: 'not_found' });
  expect(await usage(stranger)).toMatchObject({ total_calls: 0, by_key: [], records: [] });
  const { query } = findRoute(routes, 'GET /usage');
  expect(accepts(query, { key_id: keys.root.keyId })).toBe(true);
  expect(accepts(query, { key_id: 'mine' })).toBe(false);
  expect(accepts(query, { keyid: keys.root.keyId })).toBe(false);
});

it('sums by hour are present while all calls are of the last days, with the same keys as the sums by day', async () => {
  const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const at = (ms: number): string => new Date(ms).toISOString();
  const [maps, other] = [services[0] as string, services[1] as string];
  await call(keys.root, { amount: 2_000, atMs: hour - 24 * HOUR_MS });
  await call(keys.root, { amount: 1_000, atMs: hour - HOUR_MS });
  await call(keys.root, { amount: 1_000, atMs: hour - 1, serviceId: other });
  await call(keys.leaf, { amount: 500, atMs: hour - 1, tag: 'x' });
  await call(keys.leaf, { freeTier: true, atMs: hour - HOUR_MS - 1 });
  const [root, leaf] = [keys.root.keyId, keys.leaf.keyId];
  const hours = async (by: KeyRecord, query: object = {}) => (await usage(by, query)).by_hour;
  const early = { hour: at(hour - 24 * HOUR_MS), calls: 1, free_calls: 0, spent: 0.002 };
  const free = { hour: at(hour - 2 * HOUR_MS), calls: 1, free_calls: 1, spent: 0 };
  const last = { hour: at(hour - HOUR_MS), free_calls: 0 };
  expect(await hours(keys.root)).toEqual([
    {
      ...last,
      calls: 3,
      spent: 0.0025,
      by_key: [
        { key_id: root, calls: 2, free_calls: 0, spent: 0.002 },
        { key_id: leaf, calls: 1, free_calls: 0, spent: 0.0005 },
      ],
    },
    { ...free, by_key: [{ key_id: leaf, calls: 1, free_calls: 1, spent: 0 }] },
    { ...early, by_key: [{ key_id: root, calls: 1, free_calls: 0, spent: 0.002 }] },
  ]);
  const spent = async (by: KeyRecord, query: object) =>
    (await hours(by, query))?.map((its: { spent: number }) => its.spent);
  expect(await spent(keys.agent, {})).toEqual([0.0005, 0]);
  expect(await spent(keys.root, { service_id: maps })).toEqual([0.0015, 0, 0.002]);
  expect(await spent(keys.root, { key_id: leaf })).toEqual([0.0005, 0]);
  expect(await spent(keys.root, { from: at(hour - 2 * HOUR_MS), to: at(hour - HOUR_MS) })).toEqual([0]);
  const own = json(await send(routes, 'GET /usage/me', { by: keys.leaf }));
  expect(own.by_hour).toEqual([{ ...last, calls: 1, spent: 0.0005 }, free]);
  // Part of an hour and a tag have no sums by hour, and older days would be left out.
  expect(await usage(keys.root, { from: at(hour - 2 * HOUR_MS + 1) })).not.toHaveProperty('by_hour');
  expect(await usage(keys.root, { tag: 'x' })).not.toHaveProperty('by_hour');
  // The hours of so many services would take too long to read.
  await sql`UPDATE accounts SET summed_from = NULL WHERE id = ${keys.root.accountId}`;
  await sql`
    INSERT INTO key_days
    SELECT ${root}, ${at(hour).slice(0, 10)}::date, gen_random_uuid(), ${keys.root.accountId}, 1, 0, 0, 0, 0
    FROM generate_series(1, 249)`;
  expect(await usage(keys.root)).not.toHaveProperty('by_hour');
  expect(await spent(keys.root, { service_id: maps })).toEqual([0.0015, 0, 0.002]);
  await call(keys.root, { amount: 1_000, atMs: hour - 96 * HOUR_MS });
  expect(await usage(keys.root, { service_id: maps })).not.toHaveProperty('by_hour');
  expect(await spent(keys.root, { service_id: maps, from: at(hour - 24 * HOUR_MS) })).toEqual([0.0015, 0, 0.002]);
});
