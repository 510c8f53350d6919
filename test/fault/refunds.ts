// Refunds of calls under way, by the provider and by an operator: which calls, what was answered, and what Postgres has of them in the end.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from './books.ts';
import type { Told } from './callers.ts';
import type { Market } from './market.ts';
import { Random } from './random.ts';
import type { Stack } from './stack.ts';

export type PlannedRefund = {
  readonly atMs: number;
  /** From 0 to below 1: chooses one of the calls that have ended by then, the newest ones more often. */
  readonly draw: number;
  /** The share of its amount; null: all that is left. */
  readonly part: number | null;
  readonly isOperator: boolean;
  /** Sent twice at once. */
  readonly isTwice: boolean;
};

/** Drawn apart from the faults, so that a seed has the same faults with any refunds. */
export function drawRefunds(seed: number, loadMs: number): PlannedRefund[] {
  const random = new Random(seed ^ 0x4ef0d);
  return Array.from({ length: random.int(2, 7) }, () => ({
    // The first calls end after some 50 ms.
    atMs: random.int(100, loadMs),
    draw: random.next(),
    part: random.chance(0.4) ? null : random.next(),
    isOperator: random.chance(0.3),
    isTwice: random.chance(0.3),
  }));
}

/** Describes a refund in words, for the report of a failure. */
export const describeRefund = ({ atMs, part, isOperator, isTwice }: PlannedRefund): string =>
  `  ${atMs} ms: ${isOperator ? 'an operator' : 'the provider'} gives back ${part === null ? 'all' : part.toFixed(2)} of a call${isTwice ? ', twice at once' : ''}`;

/** A refund that was sent, and how it ended. */
export type GivenBack = {
  readonly usageId: string;
  readonly accountId: string;
  /** By which the call was made. */
  readonly keyId: string;
  readonly reference: string;
  /** What the call cost. */
  readonly costMicros: number;
  /** Null: all that was left. */
  readonly micros: number | null;
  readonly isOperator: boolean;
  /** 201 or 200: confirmed; 409: refused; 404: there was no such call until it was given up. */
  readonly status: number;
  /** What its sender was told that was given back; null if it was not confirmed. */
  readonly gaveMicros: number | null;
  readonly atMs: number;
  readonly endMs: number;
};

export const isConfirmed = ({ status }: GivenBack): boolean => status === 200 || status === 201;

/** How long a call is looked for: one that was told of may be lost, or be stored when Postgres is back. */
const STORED_WITHIN_MS = 8_000;
/** Pauses between looks, longer each time: each look takes a token of the provider or the operator. */
const [FIRST_RETRY_MS, LAST_RETRY_MS] = [50, 400] as const;

type Sending = {
  /** The calls that were made so far. */
  readonly calls: () => readonly Told[];
  /** Whether a call that is not there by now is given up. */
  readonly isGivenUp?: (sinceMs: number) => boolean;
};

/** Gives calls back as planned, each until there is an answer. */
export async function giveBackAll(
  market: Market,
  planned: readonly PlannedRefund[],
  { seed }: { readonly seed: number },
  { calls, isGivenUp = (sinceMs) => sinceMs > STORED_WITHIN_MS }: Sending,
): Promise<GivenBack[]> {
  const given = planned.map(async (refund, i) => {
    await sleep(refund.atMs);
    const call = choose(calls(), refund.draw);
    if (call === null) return [];
    const { usageId, accountId, keyId, amountMicros: costMicros } = call;
    const micros = refund.part === null ? null : Math.max(1, Math.floor(refund.part * costMicros));
    const reference = `refund ${seed} ${i} ${usageId}`;
    const wanted = { usageId, accountId, keyId, reference, costMicros, micros, isOperator: refund.isOperator };
    const sends = Array.from({ length: refund.isTwice ? 2 : 1 }, () => sendUntilDone(market, wanted, isGivenUp));
    return Promise.all(sends);
  });
  return (await Promise.all(given)).flat();
}

type Chosen = Pick<Told, 'accountId' | 'keyId'> & { readonly usageId: string; readonly amountMicros: number };

function choose(calls: readonly Told[], draw: number): Chosen | null {
  const paid = calls.flatMap(({ usageId, accountId, keyId, amountMicros, complete, endMs }) =>
    usageId !== null && complete && amountMicros !== null && amountMicros > 0
      ? [{ usageId, accountId, keyId, amountMicros, endMs }]
      : [],
  );
  paid.sort((a, b) => b.endMs - a.endMs);
  return paid[Math.floor(draw ** 2 * paid.length)] ?? null;
}

type Wanted = Pick<GivenBack, 'usageId' | 'accountId' | 'keyId' | 'reference' | 'costMicros' | 'micros' | 'isOperator'>;

async function sendUntilDone(
  market: Market,
  wanted: Wanted,
  isGivenUp: (sinceMs: number) => boolean,
): Promise<GivenBack> {
  const key = wanted.isOperator ? market.admin : market.provider;
  const atMs = Date.now();
  for (let retryMs: number = FIRST_RETRY_MS; ; retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)) {
    const answer = await market.refundUntilAnswered(wanted.usageId, { ...wanted, key });
    if (answer.status !== 404 || isGivenUp(Date.now() - atMs)) return { ...wanted, ...answer, atMs, endMs: Date.now() };
    await sleep(retryMs);
  }
}

type Stored = {
  readonly usageId: string;
  readonly accountId: string;
  readonly reference: string;
  readonly micros: number;
  readonly fee: number;
  readonly before: number;
};

/**
 * What was confirmed is there once, with what was asked for and told; nothing else is, and no call has given back more than it cost. The
 * fees that came back are those of the sum.
 *
 * @param rows  all calls of these accounts
 * @param mayBeGone  whether a Postgres was given up that had the refund of this reference
 */
export async function checkRefunds(
  { stores: { sql } }: Stack,
  given: readonly GivenBack[],
  rows: readonly Row[],
  mayBeGone: (reference: string) => boolean = () => false,
): Promise<string[]> {
  const accounts = Array.from(new Set(rows.map(({ accountId }) => accountId)));
  const stored = await sql<Stored[]>`
    SELECT usage_id AS "usageId", account_id AS "accountId", reference, amount AS micros, fee, total_before AS before
    FROM refunds WHERE account_id = ANY(${accounts}::uuid[]) ORDER BY usage_id, total_before`;
  const faults: string[] = [];
  const byReference = new Map(stored.map((refund) => [refund.reference, refund]));
  if (byReference.size < stored.length) faults.push('two refunds of one reference');
  for (const one of given) {
    const why = faultOf(
      byReference.get(one.reference),
      one,
      given.filter(({ reference }) => reference === one.reference),
      mayBeGone(one.reference),
    );
    if (why !== null) faults.push(`${why}: ${JSON.stringify({ one, found: byReference.get(one.reference) })}`);
  }
  const asked = new Set(given.map(({ reference }) => reference));
  faults.push(
    ...stored.filter(({ reference }) => !asked.has(reference)).map((it) => `nobody asked for ${JSON.stringify(it)}`),
  );
  for (const row of rows)
    faults.push(
      ...faultsOfCall(
        row,
        stored.filter(({ usageId }) => usageId === row.usageId),
      ),
    );
  return faults;
}

/** @param all  all that were sent with its reference, this one included */
function faultOf(
  found: Stored | undefined,
  one: GivenBack,
  all: readonly GivenBack[],
  mayBeGone: boolean,
): string | null {
  if (found === undefined) return isConfirmed(one) && !mayBeGone ? 'confirmed, but not there' : null;
  if (found.usageId !== one.usageId || (one.micros ?? found.micros) !== found.micros) return 'another call or amount';
  // If two are sent at once, the later may be answered before the earlier is stored.
  if (!all.some(isConfirmed)) return 'refused, but there';
  if (mayBeGone) return null;
  if (all.filter(({ status }) => status === 201).length > 1) return 'made twice';
  return one.gaveMicros !== null && one.gaveMicros !== found.micros ? 'told of another amount' : null;
}

function faultsOfCall(row: Row, refunds: readonly Stored[]): string[] {
  let [back, fee] = [0, 0];
  const isInOrder = refunds.every(({ before, micros, fee: part }) => {
    const follows = before === back;
    [back, fee] = [back + micros, fee + part];
    return follows;
  });
  const feeBack = row.amountMicros === 0 ? 0 : Math.floor((row.feeMicros * back) / row.amountMicros);
  const isRight = isInOrder && back <= row.amountMicros && fee === feeBack && back === row.refundedMicros;
  return isRight ? [] : [`given back of ${JSON.stringify(row)}: ${JSON.stringify(refunds)}`];
}
