import type { ShardReport } from '../ledger/reconcile/report.ts';
import type { RetentionJob } from '../ledger/retention/retention-job.ts';
import type { Hydrator } from '../ledger/wallets/hydrate.ts';
import type { UsageWriter } from '../ledger/writing/writer.ts';
import type { Source } from '../observability/metrics.ts';
import type { Reconcilers, Upkeep } from './upkeep.ts';

/**
 * The metrics of a writer. In the role `all`, gateway and writer share a page, so each name says whose metric it is.
 *
 * Tested by test/roles/writer.test.ts.
 */
export function writerMetrics(parts: {
  readonly writer: UsageWriter;
  readonly hydrator: Hydrator;
  readonly upkeep: Upkeep;
  readonly retention: RetentionJob;
}): Source[] {
  const { writer, upkeep, hydrator, retention } = parts;
  return [
    {
      name: 'tollgate_writer_stored_calls_total',
      help: 'Calls stored in Postgres, each counted once',
      type: 'counter',
      read: () => writer.stats().storedCalls,
    },
    {
      name: 'tollgate_writer_rejected_events_total',
      help: 'Usage events that could not be stored as calls; an operator has to look at the table rejected_events',
      type: 'counter',
      read: () => writer.stats().rejectedEvents,
    },
    {
      name: 'tollgate_writer_newer_events',
      help: 'Usage events of a newer version, which are left in the streams for a writer of that version',
      type: 'gauge',
      read: () => writer.stats().newerEvents,
    },
    {
      name: 'tollgate_writer_flushes_total',
      help: 'Transactions in which usage events were stored',
      type: 'counter',
      read: () => writer.stats().flushes,
    },
    {
      name: 'tollgate_writer_backlog_events',
      help: 'Usage events in the streams of this writer when it last looked',
      type: 'gauge',
      read: () => writer.stats().backlog ?? 0,
    },
    {
      name: 'tollgate_writer_owned_shards',
      help: 'Shards whose streams this writer stores',
      type: 'gauge',
      read: () => writer.stats().ownedShards,
    },
    {
      name: 'tollgate_writer_fenced_shards',
      help: 'Shards of which Postgres is older than Redis, as a flush of this writer or its comparison found',
      type: 'gauge',
      read: () => {
        const flushed = Array.from(writer.fencedShards).filter((shard) => writer.owns(shard));
        return new Set([...flushed, ...upkeep.reconcilers.olderShards]).size;
      },
    },
    {
      name: 'tollgate_writer_working',
      help: '1 while the writer works; 0 while Postgres or Redis keeps it from working',
      type: 'gauge',
      read: () => (writer.stats().working ? 1 : 0),
    },
    {
      name: 'tollgate_writer_swept_holds_total',
      help: 'Holds of dead gateways that were refunded',
      type: 'counter',
      read: () => upkeep.swept,
    },
    {
      name: 'tollgate_writer_holds_left',
      help: 'Open holds that the last sweep left alone, because they are damaged or of a newer version',
      type: 'gauge',
      read: () => upkeep.leftAlone,
    },
    {
      name: 'tollgate_writer_damaged_data_total',
      help: 'Damaged data that the sweep met in Redis, by what is damaged; an operator has to look at it',
      type: 'counter',
      label: 'what',
      read: () => upkeep.damage,
    },
    {
      name: 'tollgate_writer_loaded_wallets_total',
      help: 'Wallets loaded into Redis to apply credits',
      type: 'counter',
      read: () => hydrator.loadedWallets,
    },
    {
      name: 'tollgate_writer_dropped_days_total',
      help: 'Days whose calls this writer dropped because they are older than USAGE_RETENTION_DAYS',
      type: 'counter',
      read: () => retention.droppedDays,
    },
    {
      name: 'tollgate_writer_overdue_days',
      help: 'Days that were due to be dropped and still stored after the last round of this writer',
      type: 'gauge',
      read: () => retention.overdueDays,
    },
    ...reconciliationMetrics(upkeep.reconcilers),
  ];
}

function reconciliationMetrics(reconcilers: Reconcilers): Source[] {
  const total = (pick: (report: ShardReport) => number): number =>
    reconcilers.last?.reports.reduce((sum, report) => sum + pick(report), 0) ?? 0;
  return [
    {
      name: 'tollgate_reconciliation_drift_micros',
      help: 'Sum of the absolute differences in micro-USD between wallets in Redis and Postgres, after the last comparison',
      type: 'gauge',
      read: () => total((report) => report.absoluteDriftMicros),
    },
    {
      name: 'tollgate_reconciliation_drift_accounts',
      help: 'Accounts whose wallet, free calls or holds do not agree with Postgres after the last comparison',
      type: 'gauge',
      read: () => total((report) => report.driftingAccounts),
    },
    {
      name: 'tollgate_reconciliation_shards_not_compared',
      help: 'Shards left out of the last comparison because too many events waited for Postgres, or keys were damaged',
      type: 'gauge',
      read: () => total((report) => (report.compared ? 0 : 1)),
    },
    {
      name: 'tollgate_reconciliation_last_run_timestamp_seconds',
      help: 'When the last comparison ended; 0 before the first',
      type: 'gauge',
      read: () => (reconcilers.last?.endedAtMs ?? 0) / 1000,
    },
    {
      name: 'tollgate_reconciliation_repairs_total',
      help: 'Wallets that were set to what Postgres says; each has a row in the table repairs',
      type: 'counter',
      read: () => reconcilers.repaired,
    },
  ];
}
