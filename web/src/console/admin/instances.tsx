import { dataOf } from '../../api/client.ts';
import { Badge, Button, Card, FailureNote, Note, Skeleton, Stat, Stats, Table } from '../../design/index.ts';
import { bytes, percent, span } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { Id, When } from '../shared/cells.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { isAlive } from './attention.ts';

const ALIVE = 'It renews its lease and does not report: it hangs, or its version is older.';
const ENDED =
  'It has ended. Calls that were open then are refunded when the lease has run out; then it goes from here.';

/** `/console/instances`: the processes that live, and their versions. */
export default function Instances() {
  const { language } = useI18n();
  const found = useResource('instances', (signal) => dataOf(api.value.GET('/api/v1/admin/instances', { signal })));
  const { data } = found;
  const versions = [...new Set(data?.instances.map(({ version }) => version))];
  const written = data?.instances.reduce((sum, { shards }) => sum + (shards ?? 0), 0) ?? 0;
  return (
    <>
      <PageHead
        title="Instances"
        lead="Gateways take calls, writers store usage in Postgres."
        actions={
          <Button busy={found.loading} onClick={found.reload}>
            Refresh
          </Button>
        }
      />
      {found.failure !== null && <FailureNote failure={found.failure} retry={found.reload} />}
      {data === null ? (
        found.failure === null && <Skeleton lines={6} />
      ) : (
        <>
          {versions.length > 1 && (
            <Note tone="warn">{versions.join(' and ')} run side by side. Replace the older processes.</Note>
          )}
          {written < data.shards && (
            <Note tone="bad">
              {data.shards - written} of {data.shards} shards have no writer that reports: their usage waits in Redis.
            </Note>
          )}
          <Stats>
            <Stat label="Gateways" value={data.instances.filter(({ role }) => role === 'gateway').length} />
            <Stat label="Writers" value={data.instances.filter(({ role }) => role === 'writer').length} />
            <Stat label="Shards with a writer" value={`${written} of ${data.shards}`} />
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
                  cell: ({ role, worker }) => (
                    <span class="when">
                      <Badge tone={role === 'gateway' ? 'accent' : 'info'}>{role}</Badge>{' '}
                      {worker !== null && <span class="soft">#{worker}</span>}
                    </span>
                  ),
                },
                { title: 'Machine', cell: ({ host }) => <span class="break">{host}</span> },
                { title: 'Process', right: true, cell: ({ pid }) => pid },
                { title: 'Version', cell: ({ version }) => version },
                { title: 'Started', cell: (row) => <When at={row.started_at} /> },
                { title: 'Up', right: true, cell: (row) => span(row.uptime_seconds, language) },
                {
                  title: 'Lease',
                  right: true,
                  cell: ({ role, lease_age_seconds: age }) =>
                    role === 'writer' ? '' : age === null ? 'no calls yet' : `${span(age, language)} old`,
                },
                { title: 'Shards', right: true, cell: ({ shards }) => shards ?? '' },
                { title: 'CPU', right: true, cell: ({ cpu }) => (cpu === null ? '–' : percent(cpu, language)) },
                { title: 'Memory', right: true, cell: (row) => bytes(row.memory_bytes, language) },
                { title: 'Instance', cell: ({ instance }) => <Id id={instance} /> },
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
                  { title: 'Lease', right: true, cell: (row) => `${span(row.lease_age_seconds, language)} old` },
                  {
                    title: 'What it means',
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
