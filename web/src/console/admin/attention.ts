import type { Schemas } from '../../api/client.ts';

/** Something that an operator should look at. */
type Point = {
  readonly tone: 'bad' | 'warn' | 'info';
  readonly sign: string;
  readonly text: string;
  readonly href: string;
  readonly action: string;
};

/**
 * Reconciliation runs every minute, or takes at most a tenth of the time. After this long it is late on any system except the
 * largest.
 */
const LATE_MS = 10 * 60_000;
/** More events than this are not stored within a second or two. */
const LONG_BACKLOG = 10_000;

/** A gateway renews its lease every three seconds while it has calls. */
const RENEWED_SECONDS = 6;

/** Whether a gateway that does not report is still alive. A gateway that ended leaves its lease behind for some minutes. */
export const isAlive = (silent: Schemas['Instances']['silent'][number]): boolean =>
  silent.lease_age_seconds <= RENEWED_SECONDS;

/** What needs attention, worst first. */
export function attention(
  stats: Schemas['PlatformStats'],
  instances: Schemas['Instances'] | null,
  nowMs: number,
  usd: (value: number) => string,
): readonly Point[] {
  const points: Point[] = [];
  const add = (tone: Point['tone'], sign: string, text: string, href: string, action: string): void => {
    points.push({ tone, sign, text, href, action });
  };
  const reconciliation = ['/console/reconciliation', 'Reconciliation'] as const;
  // Drifts of several accounts may cancel out.
  if (stats.drifting_accounts > 0) {
    const text =
      stats.drifting_accounts === 1
        ? `The wallet of one account differs from Postgres by ${usd(stats.drift)}.`
        : `The wallets of ${stats.drifting_accounts} accounts differ from Postgres, by ${usd(stats.drift)} in all.`;
    add('bad', 'Drift', text, ...reconciliation);
  }
  if (stats.rejected_events > 0) {
    const text = `${stats.rejected_events} usage events could not be stored as calls. They wait in the table rejected_events.`;
    add('bad', 'Rejected', text, ...reconciliation);
  }
  if (instances !== null) fromInstances(instances, add);
  if (stats.backlog > LONG_BACKLOG) {
    add('warn', 'Backlog', `${stats.backlog} usage events wait for Postgres.`, '/console/instances', 'Instances');
  }
  if (stats.shards_not_compared > 0) {
    const text = `Some wallets could not be compared with Postgres (${stats.shards_not_compared} parts of the accounts).`;
    add('warn', 'Not compared', text, ...reconciliation);
  }
  if (stats.reconciled_at === null) add('warn', 'Not compared', 'Money has not been compared yet.', ...reconciliation);
  else if (nowMs - Date.parse(stats.reconciled_at) > LATE_MS) {
    add('warn', 'Late', 'Money was not compared for more than ten minutes.', ...reconciliation);
  }
  if (stats.accounts.suspended > 0) {
    const text = `${stats.accounts.suspended} ${stats.accounts.suspended === 1 ? 'account is' : 'accounts are'} suspended.`;
    add('info', 'Suspended', text, '/console/accounts?status=suspended', 'Accounts');
  }
  return points;
}

function fromInstances(
  { instances, silent, shards }: Schemas['Instances'],
  add: (tone: Point['tone'], sign: string, text: string, href: string, action: string) => void,
): void {
  const list = ['/console/instances', 'Instances'] as const;
  const written = instances.reduce((sum, instance) => sum + (instance.shards ?? 0), 0);
  if (written < shards) {
    add(
      'bad',
      'No writer',
      `No writer stores the usage of some accounts (${shards - written} of ${shards} parts).`,
      ...list,
    );
  }
  const hanging = silent.filter(isAlive).length;
  if (hanging > 0) {
    add(
      'warn',
      'Silent',
      `${hanging} ${hanging === 1 ? 'gateway lives and does' : 'gateways live and do'} not report.`,
      ...list,
    );
  }
  const versions = new Set(instances.map(({ version }) => version));
  if (versions.size > 1) add('info', 'Versions', `${[...versions].join(' and ')} run side by side.`, ...list);
}
