import { expect, it } from 'vitest';
import { TcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/wait.ts';
import { newEvent } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

useLedger();

/** A wait of the writer ends after 5 s by itself. So what is stored before was stored because the event came. */
const LESS_THAN_A_WAIT = 3_000;

/** The line with which CLIENT LIST shows a writer that waits for events. */
async function waitingClient(): Promise<string | undefined> {
  const list = String(await ledger.store.command('client', 'list'));
  return list.split('\n').find((line) => /name=tollgate-writer-wait .*flags=b .*cmd=xread/.test(line));
}

/** In seconds, by Redis's clock; also while the writer does not wait on it. */
async function ageOfWaitingConnection(): Promise<number> {
  const list = String(await ledger.store.command('client', 'list'));
  return Number(/name=tollgate-writer-wait age=(\d+)/.exec(list)?.[1]);
}

const isWaiting = () => until(async () => (await waitingClient()) !== undefined);

async function readsSoFar(): Promise<number> {
  const stats = String(await ledger.store.command('info', 'commandstats'));
  return Number(/cmdstat_xread:calls=(\d+)/.exec(stats)?.[1]);
}

it('an idle writer sends no commands until there is an event, and stores that event', async () => {
  const writer = ledger.startWriter();
  await isWaiting();
  const reads = await readsSoFar();
  const first = await waitingClient();
  // Redis counts a wait when it ends, after 5 s. The next one follows without another look.
  await until(async () => (await readsSoFar()) > reads);
  await isWaiting();
  expect(await readsSoFar()).toBe(reads + 1);
  expect(/ id=(\d+)/.exec(` ${await waitingClient()}`)?.[1]).toBe(/ id=(\d+)/.exec(` ${first}`)?.[1]);
  await ledger.append(newEvent());
  await until(() => writer.stats().storedCalls === 1, LESS_THAN_A_WAIT);
  await ledger.drained();
});

it('the writer goes on storing when its waiting connection is cut, and waits on a new one', async () => {
  const writer = ledger.startWriter();
  await isWaiting();
  const cut = / id=(\d+)/.exec(` ${await waitingClient()}`)?.[1] as string;
  await ledger.store.command('client', 'kill', 'id', cut);
  await ledger.append(newEvent());
  await until(() => writer.stats().storedCalls === 1, LESS_THAN_A_WAIT);
  await isWaiting();
  expect(writer.stats().working).toBe(true);
});

it('the writer can wait for entries that follow events of a newer version', async () => {
  const writer = ledger.startWriter();
  await isWaiting();
  const { accountId } = newEvent();
  await ledger.store.command(
    'xadd',
    ledger.store.keys.usage[ledger.store.keys.shardOf(accountId)] as string,
    '*',
    'e2',
    'x',
  );
  await until(() => writer.stats().newerEvents === 1, LESS_THAN_A_WAIT);
  await isWaiting();
  await ledger.append(newEvent({ accountId }));
  await until(() => writer.stats().storedCalls === 1, LESS_THAN_A_WAIT);
});

it('the writer stores the events of the other streams when a damaged stream keeps it from waiting', async () => {
  const { keys } = ledger.store;
  const writer = ledger.startWriter();
  await isWaiting();
  const event = newEvent();
  await ledger.store.command('set', keys.usage[(keys.shardOf(event.accountId) + 1) % keys.shards] as string, 'text');
  await ledger.append(event);
  await until(() => writer.stats().storedCalls === 1, LESS_THAN_A_WAIT);
});

it('the writer stops at once while it waits', async () => {
  const writer = ledger.startWriter();
  await isWaiting();
  await ledger.append(newEvent());
  await writer.stop(1_000);
  expect(await ledger.backlog()).toBe(0);
  await until(async () => (await waitingClient()) === undefined);
});

it('an event that is visible but unreadable does not make the writer ask without a pause', async () => {
  const writer = ledger.startWriter();
  await isWaiting();
  const event = newEvent();
  const stream = ledger.store.keys.usage[ledger.store.keys.shardOf(event.accountId)] as string;
  const newer = (await ledger.store.command('xadd', stream, '*', 'e2', 'x')) as string;
  await until(() => writer.stats().newerEvents === 1, LESS_THAN_A_WAIT);
  await isWaiting();
  // Now the writer expects one entry more to skip than there are.
  await ledger.store.command('xdel', stream, newer);
  await ledger.append(event);
  const before = await readsSoFar();
  const ageBefore = await ageOfWaitingConnection();
  await until(async () => (await ageOfWaitingConnection()) >= ageBefore + 2);
  expect((await readsSoFar()) - before).toBeLessThan(20);
});

it('a silent connection delays events once; then the writer polls on the other connection until it can wait again', async () => {
  const { server } = ledger.store;
  const proxy = await TcpProxy.open(Number(new URL(server.url).port));
  try {
    const writer = ledger.startWriter({ redisUrl: proxy.through(server.url) });
    await isWaiting();
    proxy.set('swallow replies');
    await ledger.append(newEvent());
    await until(() => writer.stats().storedCalls === 1, 15_000);
    // The connection was given up, not only the wait: the client itself would keep it for 18 s, and each wait would take 6.
    const accepted = proxy.accepted;
    await until(() => proxy.accepted > accepted, 10_000);
    await ledger.append(newEvent());
    await until(() => writer.stats().storedCalls === 2, LESS_THAN_A_WAIT);
    proxy.set('pass');
    await isWaiting();
  } finally {
    await ledger.stopWriters();
    await proxy.close();
  }
});
