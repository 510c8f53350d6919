// Sends random octets to a running gateway. It must go on serving. The service must see only complete, well-formed requests, no
// more of them than were sent, and each must be exactly one call.

import { CALLER_CORPUS } from '../conformance/callers/corpus.ts';
import { readStrictly } from '../conformance/strict-requests.ts';
import type { Witness } from '../conformance/witness.ts';
import { keysForFullLoad } from '../integration/load.ts';
import { authorization, type Key, type Marketplace } from '../integration/marketplace.ts';
import { RawCaller } from '../integration/raw-caller.ts';
import { until } from '../support/wait.ts';
import { mutated } from './mutate.ts';
import { type Random, seeded, split } from './random.ts';

/** Connections open at once. */
const BATCH = 16;
/** After this many batches a new key is used, because every call takes a token of its key's rate limit. */
const BATCHES_PER_KEY = 6;
const KEYS = { callers: 1, keysEach: 50, balanceMicros: 10_000_000 };
/** Sent at least, even if the time is up: with fewer, hardly any request reaches the service. */
const MIN_BATCHES = 8;
const MARK = /f\d+-\d+-/g;

type EdgeRun = { readonly connections: number; readonly forwarded: number; readonly calls: number };

type EdgeTarget = {
  readonly market: Marketplace;
  readonly witness: Witness;
  readonly proxyPath: string;
};

/** @throws an error with the seed and the last batch sent, when the gateway breaks one of the rules above */
export async function fuzzEdge(target: EdgeTarget, seed: number, seconds: number): Promise<EdgeRun> {
  const random = seeded(seed);
  const deadline = performance.now() + seconds * 1000;
  const marks = new Marks();
  let connections = 0;
  const keys = newKeys(target.market);
  let key = (await keys.next()).value;
  for (let batch = 0; batch < MIN_BATCHES || performance.now() < deadline; batch++) {
    if (batch % BATCHES_PER_KEY === BATCHES_PER_KEY - 1) key = (await keys.next()).value;
    const wires = wiresOf(random, target.proxyPath, key, batch);
    marks.add(wires);
    try {
      await sendAll(random, target, key, wires);
      marks.check(target.witness);
    } catch (error) {
      const sent = wires.map((wire) => JSON.stringify(wire.toString('latin1'))).join('\n');
      throw new Error(`seed ${seed}, batch ${batch}:\n${sent}`, { cause: error });
    }
    connections += wires.length;
  }
  return { connections, ...(await audited(target)) };
}

/** Makes keys straight in the database. A fast machine uses ten a second, which the admin's rate limit at the gateway forbids. */
async function* newKeys({ stores }: Marketplace): AsyncGenerator<Key, never> {
  for (;;) yield* (await keysForFullLoad(stores.sql, KEYS)).flat();
}

function wiresOf(random: Random, proxyPath: string, key: Key, batch: number): Buffer[] {
  const wires = CALLER_CORPUS.flatMap(({ cases }) => cases.map(({ wire }) => [wire].flat().join('')));
  // Each connection has a mark of its own, in the path of all its requests.
  return Array.from({ length: BATCH }, (_, i) => {
    const filled = (wire: string): Buffer =>
      Buffer.from(
        wire
          .replaceAll('{path}', `${proxyPath}/f${batch}-${i}-`)
          .replaceAll('{evil}', `${proxyPath}/f${batch}-${i}-evil`)
          .replaceAll('{auth}', `Authorization: ${authorization(key)}\r\n`)
          .replaceAll('{evil-length}', '60'),
        'latin1',
      );
    return mutated(
      random,
      [0, 1, 2].map(() => filled(wires[random(wires.length)] as string)),
    );
  });
}

/**
 * Sends each wire on a connection of its own; some half-close at once. The gateway must still serve, and must close all of them.
 */
async function sendAll(
  random: Random,
  { market, proxyPath }: EdgeTarget,
  key: Key,
  wires: readonly Buffer[],
): Promise<void> {
  const callers = await Promise.all(wires.map(() => RawCaller.connect(market.baseUrl)));
  for (const [i, wire] of wires.entries()) {
    for (const piece of split(random, wire, 3)) (callers[i] as RawCaller).send(piece);
    if (random(4) === 0) (callers[i] as RawCaller).socket.end();
  }
  const { status } = await market.request(`${proxyPath}/fence`, { key });
  if (status !== 200) throw new Error(`a well-formed call got ${status}`);
  for (const { socket } of callers) socket.end();
  await until(() => callers.every(({ gone }) => gone));
  for (const caller of callers) caller.destroy();
}

/**
 * Counts requests by the mark in their path, and bounds them by how often `HTTP/1.1` was sent, which no request lacks. A random
 * change can turn a mark into that of another connection, so the bound of a mark adds up all connections that sent it.
 */
class Marks {
  readonly #sent = new Map<string, number>();
  readonly #seen = new Map<string, number>();
  #heads = 0;

  add(wires: readonly Buffer[]): void {
    for (const wire of wires) {
      const text = wire.toString('latin1');
      const requests = text.split('HTTP/1.1').length - 1;
      for (const mark of new Set(text.match(MARK))) this.#sent.set(mark, (this.#sent.get(mark) ?? 0) + requests);
    }
  }

  /** @throws when the service saw more requests than were sent */
  check({ heads }: Witness): void {
    for (; this.#heads < heads.length; this.#heads++) {
      const head = heads[this.#heads] as string;
      const [mark] = head.match(MARK) ?? [];
      if (mark === undefined) continue;
      const seen = (this.#seen.get(mark) ?? 0) + 1;
      this.#seen.set(mark, seen);
      const sent = this.#sent.get(mark) ?? 0;
      if (seen > sent) throw new Error(`the service saw ${seen} requests where ${sent} were sent: ${head}`);
    }
  }
}

async function audited({ market, witness }: EdgeTarget): Promise<Omit<EdgeRun, 'connections'>> {
  if (witness.faults.length > 0)
    throw new Error(`llhttp refused what reached the service: ${witness.faults.join(', ')}`);
  for (const pieces of witness.connections) readStrictly(Buffer.concat(pieces));
  await market.settled();
  const rows = await market.stores.sql<{ id: string }[]>`SELECT usage_id AS id FROM calls`;
  const calls = new Set(rows.map(({ id }) => id));
  if (calls.size !== rows.length) throw new Error('a call has two records');
  const forwarded = witness.seen.map(({ usageId }) => usageId);
  if (new Set(forwarded).size !== forwarded.length) throw new Error('a call was forwarded twice');
  const uncharged = forwarded.filter((id) => !calls.has(id));
  if (uncharged.length > 0) throw new Error(`forwarded without a record: ${uncharged.join(', ')}`);
  const { drifting, negative, total } = await market.books();
  if (JSON.stringify([drifting, negative, total]) !== '[[],0,"0"]') throw new Error('the books do not balance');
  return { forwarded: forwarded.length, calls: calls.size };
}
