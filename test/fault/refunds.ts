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
  readonly reference: string;
  /** Null: all that was left. */
  readonly micros: number | null;
  readonly isOperator: boolean;
  /** 201 or 200: confirmed; 409: refused; 404: there was no such call until it was given up. */
  readonly status: number;
};

/** How long a call is looked for: one that was told of may be lost, or be stored when Postgres is back. */
const STORED_WITHIN_MS = 8_000;
const RETRY_MS = 50;

/** Gives calls back as planned, each until there is an answer. @param calls  those that were made so far */
export async function giveBackAll(
  market: Market,
  planned: readonly PlannedRefund[],
  { seed }: { readonly seed: number },
  calls: () => readonly Told[],
): Promise<GivenBack[]> {
  const given = planned.map(async (refund, i) => {
    await sleep(refund.atMs);
    const call = choose(calls(), refund.draw);
    if (call === null) return [];
    const { usageId, accountId } = call;
    const micros = refund.part === null ? null : Math.max(1, Math.floor(refund.part * call.amountMicros));
    const reference = `refund ${seed} ${i} ${usageId}`;
    const wanted = { usageId, accountId, reference, micros, isOperator: refund.isOperator };
    const sends = Array.from({ length: refund.isTwice ? 2 : 1 }, () => sendUntilDone(market, wanted));
    return (await Promise.all(sends)).map((status) => ({ ...wanted, status }));
  });
  return (await Promise.all(given)).flat();
}

type Chosen = { readonly usageId: string; readonly accountId: string; readonly amountMicros: number };

function choose(calls: readonly Told[], draw: number): Chosen | null {
  const paid = calls.flatMap(({ usageId, accountId, amountMicros, complete, endMs }) =>
    usageId !== null && complete && amountMicros !== null && amountMicros > 0
      ? [{ usageId, accountId, amountMicros, endMs }]
      : [],
  );
  paid.sort((a, b) => b.endMs - a.endMs);
  return paid[Math.floor(draw ** 2 * paid.length)] ?? null;
}

async function sendUntilDone(
  market: Market,
  { usageId, micros, reference, isOperator }: Omit<GivenBack, 'status'>,
): Promise<number> {
  const key = isOperator ? market.admin : market.provider;
  for (const deadline = performance.now() + STORED_WITHIN_MS; ; await sleep(RETRY_MS)) {
    const status = await market.refundUntilAnswered(usageId, { micros, reference, key });
    if (status !== 404 || performance.now() > deadline) return status;
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
 * What was confirmed is there once, with what was asked for; nothing else is, and no call has given back more than it cost. The fees that
 * came back are those of the sum.
 *
 * @param rows  all calls of these accounts
 */
export async function checkRefunds(
  { stores: { sql } }: Stack,
  given: readonly GivenBack[],
  rows: readonly Row[],
): Promise<string[]> {
  const accounts = Array.from(new Set(rows.map(({ accountId }) => accountId)));
  const stored = await sql<Stored[]>`
    SELECT usage_id AS "usageId", account_id AS "accountId", reference, amount AS micros, fee, total_before AS before
    FROM refunds WHERE account_id = ANY(${accounts}::uuid[]) ORDER BY usage_id, total_before`;
  const faults: string[] = [];
  const byReference = new Map(stored.map((refund) => [refund.reference, refund]));
  if (byReference.size < stored.length) faults.push('two refunds of one reference');
  for (const one of given) {
    const found = byReference.get(one.reference);
    const isConfirmed = one.status === 200 || one.status === 201;
    if (isConfirmed && found === undefined) faults.push(`confirmed, but not there: ${JSON.stringify(one)}`);
    const isAsked =
      found === undefined || (found.usageId === one.usageId && (one.micros ?? found.micros) === found.micros);
    if (!isAsked) faults.push(`another call or amount: ${JSON.stringify({ one, found })}`);
    // Of two at once the later one may be answered while the earlier one is still to be stored.
    const others = given.filter(({ reference }) => reference === one.reference);
    if (found !== undefined && others.every(({ status }) => status >= 400)) {
      faults.push(`refused, but there: ${JSON.stringify({ one, found })}`);
    }
    if (others.filter(({ status }) => status === 201).length > 1) faults.push(`made twice: ${JSON.stringify(one)}`);
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
