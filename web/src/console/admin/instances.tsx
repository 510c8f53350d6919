import './admin.css';
import { dataOf } from '../../api/client.ts';
import { Badge, FailureNote, Note, SkeletonPage } from '../../design/index.ts';
import { Card, Stat, Stats, Table } from '../../design/more.ts';
import { bytes, percent, span } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { When } from '../shared/cells.tsx';
import { Id } from '../shared/ids.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { isAlive } from './attention.ts';
import { useEvery } from './use-every.ts';

/** A new key has 60 requests a minute; this takes 12 of them. */
const ASK_EVERY_MS = 5_000;

const ALIVE =
  'It renewed its lease within the last seconds and does not report: it has just started or ended. If it stays, it hangs, or its version is older.';
const ENDED =
  'It has ended. Calls that were open then are refunded when the lease has run out; then it disappears from this list.';

/** `/console/instances`: the living processes, and their versions. */
export default function Instances() {
  const { language } = useI18n();
  const found = useResource('instances', (signal) => dataOf(api.value.GET('/api/v1/admin/instances', { signal })));
  const { data } = found;
  useEvery(ASK_EVERY_MS, found.reload);
  const versions = [...new Set(data?.instances.map(({ version }) => version))];
  const written = data?.instances.reduce((sum, { shards }) => sum + (shards ?? 0), 0) ?? 0;
  return (
    <>
      <PageHead
        title="Instances"
        lead="Gateways take calls, writers store usage in Postgres. Updated every five seconds."
      />
      {found.failure !== null && <FailureNote failure={found.failure} retry={found.reload} />}
      {data === null ? (
        found.failure === null && <SkeletonPage shape="figures" />
      ) : (
        <>
          {versions.length > 1 && (
            <Note tone="warn">{versions.join(' and ')} run side by side. Replace the older processes.</Note>
          )}
          {written < data.shards && (
            <Note tone="bad">
              {data.shards - written} of {data.shards} parts of the accounts have no writer that reports: their usage
              waits in Redis, and is stored once a writer is back. A writer that is being replaced is back within
              seconds.
            </Note>
          )}
          <Stats>
            <Stat label="Gateways" value={data.instances.filter(({ role }) => role === 'gateway').length} />
            <Stat label="Writers" value={data.instances.filter(({ role }) => role === 'writer').length} />
            <Stat label="Parts with a writer" value={`${written} of ${data.shards}`} />
            <Stat label="Version" value={versions.join(', ') || '–'} />
          </Stats>
          <Card flush>
            <Table
              caption="Instances"
              keyOf={({ instance }) => instance}
              rows={data.instances}
              columns={[
                {
                  title: 'Role',
                  cell: ({ role, worker, instance }) => (
                    <span class="nowrap" title={instance}>
                      <Badge tone={role === 'gateway' ? 'accent' : 'info'}>{role}</Badge>{' '}
                      {worker !== null && <span class="soft">#{worker}</span>}
                    </span>
                  ),
                },
                {
                  title: 'Machine',
                  cell: ({ host, pid }) => (
                    <>
                      <span class="break">{host}</span>
                      <span class="below">process {pid}</span>
                    </>
                  ),
                },
                { title: 'Version', cell: ({ version }) => version },
                { title: 'Started', cell: (row) => <When at={row.started_at} /> },
                { title: 'Up', right: true, cell: (row) => span(row.uptime_seconds, language) },
                {
                  title: 'Lease renewed',
                  right: true,
                  cell: ({ role, lease_age_seconds: age }) =>
                    role === 'writer' ? '' : age === null ? 'no calls yet' : `${span(age, language)} ago`,
                },
                { title: 'Parts', right: true, cell: ({ shards }) => shards ?? '' },
                { title: 'CPU', right: true, cell: ({ cpu }) => (cpu === null ? '–' : percent(cpu, language)) },
                { title: 'Memory', right: true, cell: (row) => bytes(row.memory_bytes, language) },
              ]}
            />
          </Card>
          {data.silent.length > 0 && (
            <Card title="Silent" flush>
              <Table
                caption="Gateways with a lease that do not report"
                keyOf={({ instance }) => instance}
                rows={data.silent}
                columns={[
                  { title: 'Instance', cell: ({ instance }) => <Id id={instance} /> },
                  {
                    title: 'Lease renewed',
                    right: true,
                    cell: (row) => `${span(row.lease_age_seconds, language)} ago`,
                  },
                  {
                    title: 'What it means',
                    wide: true,
                    cell: (row) => (isAlive(row) ? ALIVE : ENDED),
                  },
                ]}
              />
            </Card>
          )}
        </>
      )}
    </>
  );
}
