import type { Outcome } from './course.ts';
import { isOfWrongClock } from './losses.ts';
import { isFreeOnly } from './wishes.ts';

/** What the schedules have met. Without failed calls they prove nothing. */
export function report(outcomes: readonly Outcome[]): void {
  const counts = new Map<string, number>();
  const count = (name: string, by = 1): void => void counts.set(name, (counts.get(name) ?? 0) + by);
  for (const { told, rows, ofChildren, exceptions, unplanned, driftMicros } of outcomes) {
    if (unplanned > 0) count('failovers that nobody planned', unplanned);
    if (driftMicros > 0) count('schedules with a drift');
    if (driftMicros > 0) count('micro-USD of drift', driftMicros);
    count('calls', told.length);
    if (ofChildren > 0) count('by child keys', ofChildren);
    for (const { path, usageId, status, code, idempotencyKey, isReplayed } of told) {
      if (idempotencyKey !== null) count('with an idempotency key');
      if (isReplayed) count('replayed');
      if (isFreeOnly(path) && usageId !== null) count('free only and served');
      count(status === 0 ? 'without an answer' : `answered ${status}${code === null ? '' : ` (${code})`}`);
    }
    for (const row of rows) {
      const { outcome, status, tag, freeTier, usageId, amountMicros, refundedMicros, authorizedMicros, isClamped } =
        row;
      count(outcome);
      if (outcome === 'refunded:upstream_error' && status < 499) count(`given back for a ${status} of an MCP server`);
      if (outcome.startsWith('refunded:') && freeTier) count('free calls given back');
      if (tag !== null) count('tagged');
      if (refundedMicros > 0) count(refundedMicros === amountMicros ? 'given back whole' : 'given back in part');
      if (authorizedMicros !== null) count('priced by use');
      if (isClamped) count('clamped');
      if (isOfWrongClock(usageId)) count('stored with the time of a clock ahead');
    }
    for (const [row, times] of exceptions) count(`told otherwise, ${row}`, times);
  }
  const slowest = Math.max(...outcomes.map(({ recoveryMs }) => recoveryMs));
  console.log(`slowest recovery: ${Math.round(slowest)} ms after the last repair`);
  console.log(`${outcomes.length} schedules: ${Array.from(counts, ([name, n]) => `${n} ${name}`).join(', ')}`);
}
