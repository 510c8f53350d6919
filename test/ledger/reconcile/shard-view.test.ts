import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { compare } from '../../../src/ledger/reconcile/identity.ts';
import { ShardView, StreamTooLong } from '../../../src/ledger/reconcile/shard-view.ts';
import { readRedisRun } from '../../../src/ledger/redis-run.ts';
import type { Scene } from '../../admission/calls.ts';
import { holdOf, newEvent, tailOf } from '../support.ts';
import { ComparedLedger } from './scene.ts';

const MAX_EVENTS = 10;

let compared: ComparedLedger;
beforeAll(async () => {
  compared = await ComparedLedger.open();
});
afterAll(() => compared.close());
beforeEach(() => compared.clear());

/** A buyer, a view of its shard that keeps only a few events, and a function that reads the buyer in that view. */
async function open(waiting = 1_000) {
  const { sql, store } = compared.ledger;
  const scene = await compared.newScene(10_000);
  const { redis, keys } = store;
  const { dataId } = await readRedisRun(redis);
  const view = new ShardView({ sql, redis, keys }, keys.shardOf(scene.accountId), dataId, {
    waiting,
    kept: MAX_EVENTS,
  });
  await view.readAhead();
  const look = async () => (await view.read([scene.accountId], async ({ states }) => states.map(compare)))[0];
  const call = async (times: number) => {
    for (let i = 0; i < times; i++) await compared.call(scene, 100);
  };
  return { view, look, call, scene };
}

/** Charges as a call does whose event gets this id in the stream. */
async function chargeAt(scene: Scene, id: string, micros: number): Promise<void> {
  const { store } = compared.ledger;
  const { accountId } = scene;
  const event = newEvent({ ...scene, heldMicros: micros });
  const text = [event.usageId, holdOf(event), tailOf(event)].join('\t');
  await compared.changeBalance(scene, -micros);
  await store.command('xadd', store.keys.usage[store.keys.shardOf(accountId)] as string, id, 'e1', text);
}

/** FLUSHALL, as far as it concerns the account; then its wallet is loaded again. */
async function loseAll({ accountId }: Scene): Promise<void> {
  const { store } = compared.ledger;
  await store.command('del', store.keys.usage[store.keys.shardOf(accountId)] as string, store.walletName(accountId));
  await compared.hydrator.loadWallet(accountId);
}

it('a long comparison counts the events that wait, and not the events that are stored while it runs', async () => {
  const { look, call } = await open();
  for (let round = 1; round <= 4; round++) {
    await call(MAX_EVENTS - 2);
    expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 800 });
    await compared.storeAll();
    expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 0, settledMicros: 10_100 - 900 * round });
    // Some events wait behind the stored ones.
    await call(1);
    expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 100 });
    await compared.storeAll();
  }
});

it('a comparison ends when more events wait than the view keeps', async () => {
  const { look, call } = await open();
  await call(MAX_EVENTS);
  expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 1_000 });
  await call(1);
  await expect(look()).rejects.toBeInstanceOf(StreamTooLong);
});

it('a comparison does not begin while the writer is behind', async () => {
  const { view, look, call } = await open(3);
  await call(4);
  await expect(view.readAhead()).rejects.toBeInstanceOf(StreamTooLong);
  await compared.storeAll();
  await view.readAhead();
  expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 0, settledMicros: 9_600 });
});

it.each([
  ['smaller ids, because its clock was ahead', ['5-0', '6-0'], ['3-0', '4-0']],
  ['smaller and greater ids', ['5-0', '6-0'], ['4-0', '5-1', '7-0']],
  ['the same ids', ['5-0', '6-0'], ['5-0', '6-0', '7-0']],
])('after Redis was emptied, only its new events count, even if they have %s', async (_, before, after) => {
  const { look, scene } = await open();
  for (const id of before) await chargeAt(scene, id, 100);
  expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 200 });
  await loseAll(scene);
  for (const id of after) await chargeAt(scene, id, 7);
  expect(await look()).toMatchObject({ driftMicros: 0, streamedMicros: 7 * after.length });
});
