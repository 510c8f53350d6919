// Compares what callers were told and what the service saw with the records. Each permitted difference is a row of the failure
// table (docs/design.md), and is counted.

import type { Row } from './books.ts';
import type { Told } from './callers.ts';
import { timeOf } from './losses.ts';

/** Rows of the failure table that permit an amount told to the caller to differ from the record. */
export type Exception = 'gateway killed' | 'service dies in the middle of the body' | 'lost with a store';

type Evidence = {
  readonly told: readonly Told[];
  readonly rows: readonly Row[];
  /** Usage ids of the calls that reached the service. */
  readonly seen: ReadonlySet<string>;
  /** The calls whose hold was seen in Redis: usage id to account. */
  readonly held: ReadonlyMap<string, string>;
  /** Whether holds may have been swept in this schedule. */
  readonly losesGateway: boolean;
  /** Whether a store may have lost what it had acknowledged of this call, which lasted from then to then. */
  readonly mayBeLost: (accountId: string, fromMs: number, toMs: number, usageId: string) => boolean;
  /** The same of a hold that was seen, but perhaps never acknowledged. */
  readonly mayVanish: (accountId: string, fromMs: number, toMs: number, usageId: string) => boolean;
  /** Whether a wallet may have been below zero: it had spent what it had too much. */
  readonly mayBeNegative?: boolean;
};

/** A call of which only the id is known had ended after this time: no caller waits longer. */
export const LONGEST_CALL_MS = 3_000;

export function checkPromises(evidence: Evidence): { faults: string[]; exceptions: Map<Exception, number> } {
  const { told, rows, seen, held } = evidence;
  const byId = new Map(rows.map((row) => [row.usageId, row]));
  const exceptions = new Map<Exception, number>();
  const faults: string[] = [];
  for (const call of told) {
    const verdict = judge(call, byId, evidence);
    if (verdict === null) continue;
    if (verdict.startsWith('!')) faults.push(`${verdict.slice(1)}: ${JSON.stringify(describe(call, byId))}`);
    else exceptions.set(verdict as Exception, (exceptions.get(verdict as Exception) ?? 0) + 1);
  }
  const spans = new Map(told.map((call) => [call.requestId, call]));
  const spanOf = (usageId: string): [fromMs: number, toMs: number] => {
    const call = spans.get(usageId);
    return call === undefined ? [timeOf(usageId), timeOf(usageId) + LONGEST_CALL_MS] : [call.atMs, call.endMs];
  };
  for (const [usageId, accountId] of held) {
    if (byId.has(usageId) || evidence.mayVanish(accountId, ...spanOf(usageId), usageId)) continue;
    faults.push(`held, but there is no record of ${usageId}, ${timesOf(...spanOf(usageId))}`);
  }
  for (const row of rows) {
    const answered = row.outcome === 'completed' && row.status !== 499;
    if (answered && !seen.has(row.usageId)) faults.push(`never reached the service: ${JSON.stringify(row)}`);
    if (
      row.outcome === 'abandoned' &&
      !evidence.losesGateway &&
      !evidence.mayBeLost(row.accountId, ...spanOf(row.usageId), row.usageId)
    ) {
      faults.push(`swept for no reason: ${row.usageId}`);
    }
  }
  return { faults, exceptions };
}

const timesOf = (...times: readonly number[]): string =>
  times.map((ms) => new Date(ms).toISOString().slice(14, 23)).join(' to ');

const describe = (call: Told, byId: ReadonlyMap<string, Row>) => ({
  status: call.status,
  complete: call.complete,
  path: call.path,
  usageId: call.requestId,
  times: timesOf(call.atMs, call.endMs),
  told: call.amountMicros,
  free: call.freeTier,
  record: byId.get(call.requestId ?? '') ?? null,
});

/** @returns null when told and recorded agree; a text that begins with '!' for a fault; or the row that permits the difference */
function judge(
  call: Told,
  byId: ReadonlyMap<string, Row>,
  { losesGateway, seen, mayBeLost, mayBeNegative = false }: Evidence,
): Exception | null | string {
  // What a replay says is of another call; repeats.ts judges it.
  if (call.requestId === null || call.isReplayed) return null;
  const row = byId.get(call.requestId);
  if (call.usageId === null) {
    if (seen.has(call.requestId)) return '!refused, but the service got it';
    return row === undefined || row.amountMicros === 0 ? null : '!refused, but charged';
  }
  if (call.usageId !== call.requestId) return '!two ids of one call';
  const isExcused = mayBeLost(call.accountId, call.atMs, call.endMs, call.requestId);
  if (row === undefined) return isExcused ? 'lost with a store' : '!admitted, but there is no record';
  if (call.freeTier !== row.freeTier) return '!the free tier served it, or it did not';
  if (!mayBeNegative && Number(call.balanceMicros) < 0) return '!told of a balance below zero';
  if (call.amountMicros === row.amountMicros) return null;
  if (call.isHeld && row.outcome === 'completed' && row.amountMicros <= Number(call.amountMicros)) return null;
  if (row.amountMicros !== 0) return '!charged another amount than told';
  if (row.outcome === 'abandoned' && losesGateway) return 'gateway killed';
  // The end of the call was lost, so its hold was open again, and was swept.
  if (row.outcome === 'abandoned' && isExcused) return 'lost with a store';
  if (row.outcome === 'refunded:upstream_cut' && !call.complete) return 'service dies in the middle of the body';
  return '!told of a charge that was not made';
}
