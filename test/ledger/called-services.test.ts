import { beforeEach, expect, it } from 'vitest';
import { CalledServices } from '../../src/ledger/called-services.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { holdOf, newEvent } from './support.ts';
import { ledger, useLedger } from './use-ledger.ts';

useLedger();

let called: CalledServices;
let service: { readonly id: string; readonly providerId: string };
beforeEach(() => {
  called = new CalledServices({ sql: ledger.sql, redis: ledger.store.redis, keys: ledger.store.keys });
  service = { id: uuidv7(), providerId: uuidv7() };
});

const eventOf = (more: object = {}) => newEvent({ serviceId: service.id, providerId: service.providerId, ...more });
async function hold(accountId: string, text: string): Promise<void> {
  const { keys } = ledger.store;
  await ledger.store.command('hset', keys.open[keys.shardOf(accountId)] as string, uuidv7(), text);
}
const open = (event: ReturnType<typeof newEvent>) => hold(event.accountId, holdOf(event));
async function store(...events: ReturnType<typeof newEvent>[]): Promise<void> {
  await ledger.append(...events);
  ledger.startWriter();
  await ledger.drained();
  await ledger.stopWriters();
}

it('a service counts as called while a call is open, after the call has ended, and after it is stored', async () => {
  expect(await called.has(service)).toBe(false);
  await open(eventOf({ heldMicros: 0 }));
  expect([await called.has(service), await called.hasStored(service.id)]).toEqual([true, false]);
  await ledger.clear();
  await ledger.append(eventOf());
  expect([await called.has(service), await called.hasStored(service.id)]).toEqual([true, false]);
  await store();
  expect([await called.has(service), await called.hasStored(service.id)]).toEqual([true, true]);
});

it('calls of its provider, calls of other services and tombstones do not count', async () => {
  const own = eventOf({ accountId: service.providerId, heldMicros: 0 });
  const other = newEvent({ path: `/${service.id}` });
  await open(own);
  await open(other);
  await hold(service.providerId, 'x\t\t1\tgateway-1');
  await store(own, other);
  await ledger.append(eventOf({ accountId: service.providerId, heldMicros: 0 }), newEvent());
  expect(await called.has(service)).toBe(false);
});

it('a hold of an unknown version that names the service counts as a call, because nobody can tell whose it is', async () => {
  await hold(uuidv7(), holdOf(eventOf()).replace(/^v1/, 'v9'));
  expect(await called.has(service)).toBe(true);
});

it('a call is found among thousands of others, on whatever page and shard', async () => {
  const others = Array.from({ length: 2_000 }, () => newEvent());
  await Promise.all(others.map(open));
  await ledger.append(...others);
  expect(await called.has(service)).toBe(false);
  await ledger.append(eventOf());
  expect(await called.has(service)).toBe(true);
});

it('more events than the search reads count as a call', async () => {
  // One shard's stream with one page more than is read.
  const { keys, redis } = ledger.store;
  const pages = { script: async () => [0, '1-1'] } as unknown as typeof redis;
  const busy = new CalledServices({ sql: ledger.sql, redis: pages, keys });
  expect(await busy.has(service)).toBe(true);
});
