import './admin.css';
import type { ComponentChildren } from 'preact';
import { useCallback } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Badge, FailureNote, LinkButton, SkeletonPage } from '../../design/index.ts';
import { Card, Stat, Stats, Table } from '../../design/more.ts';
import { ago, count, money, percent } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { PageHead } from '../shared/page-head.tsx';
import { attention } from './attention.ts';
import { Find } from './find.tsx';
import { useEvery } from './use-every.ts';

/** A new key has 60 requests a minute; this takes 8 of them. */
const ASK_EVERY_MS = 15_000;

type PlatformStats = Schemas['PlatformStats'];

/** `/console` of an admin: what needs attention, then the platform in numbers. */
export default function Overview() {
  const stats = useResource('stats', (signal) => dataOf(api.value.GET('/api/v1/admin/stats', { signal })));
  const instances = useResource('instances', (signal) => dataOf(api.value.GET('/api/v1/admin/instances', { signal })));
  const reload = useCallback(() => {
    stats.reload();
    instances.reload();
  }, [stats.reload, instances.reload]);
  useEvery(ASK_EVERY_MS, reload);
  return (
    <>
      <PageHead
        title="Overview"
        lead="The marketplace today, and what needs your attention."
        actions={
          <LinkButton kind="primary" href="/console/live">
            Live traffic
          </LinkButton>
        }
      />
      <Find />
      {stats.failure !== null && <FailureNote failure={stats.failure} retry={stats.reload} />}
      {instances.failure !== null && <FailureNote failure={instances.failure} retry={instances.reload} />}
      {/* Both, because what needs attention stands above the figures. */}
      {stats.data === null || (instances.data === null && instances.failure === null) ? (
        stats.failure === null && <SkeletonPage shape="figures" />
      ) : (
        <>
          <Attention stats={stats.data} instances={instances.data} />
          <Figures stats={stats.data} />
        </>
      )}
    </>
  );
}

function Attention({
  stats,
  instances,
}: {
  readonly stats: PlatformStats;
  readonly instances: Schemas['Instances'] | null;
}) {
  const { language } = useI18n();
  const points = attention(stats, instances, Date.now(), (value) => money(value, language));
  return (
    <Card title="Needs attention" flush>
      {points.length === 0 ? (
        <p class="quiet row">
          <Badge tone="good">All well</Badge>
          <span>
            Money agrees, usage is stored as it comes
            {instances === null ? '.' : ', and every writer works.'}
          </span>
        </p>
      ) : (
        <ul class="attention">
          {points.map(({ tone, sign, text, href, action }) => (
            <li key={text}>
              <Badge tone={tone}>{sign}</Badge>
              <span class="attention-text">{text}</span>
              <a href={href}>{action}</a>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Figures({ stats }: { readonly stats: PlatformStats }) {
  const { language } = useI18n();
  const { today } = stats.calls;
  const number = (value: number): string => count(value, language);
  const usd = (value: number): string => money(value, language);
  const share = (sums: Schemas['CallSums']): string =>
    sums.calls === 0 ? '–' : percent(sums.succeeded / sums.calls, language);
  const spans: [string, Schemas['CallSums']][] = [
    ['Today (UTC)', today],
    ['Last 24 hours', stats.calls.last_24_hours],
    ['Last 30 days', stats.calls.last_30_days],
  ];
  return (
    <>
      <Stats>
        <Stat label="Calls today" value={number(today.calls)} hint={`${number(today.free_calls)} free`} />
        <Stat label="Succeeded" value={share(today)} hint="of today's calls, those given back included" />
        <Stat
          label="Charged today"
          value={usd(today.charged)}
          hint={`failed calls cost nothing${today.refunded === 0 ? '' : `; ${usd(today.refunded)} given back later`}`}
        />
        <Stat label="Fees today" value={usd(today.fees)} hint="the platform's share" />
      </Stats>
      <Stats>
        <Stat
          label="Drift"
          value={usd(stats.drift)}
          hint={
            stats.reconciled_at === null
              ? 'never compared'
              : `compared ${ago(stats.reconciled_at, language, Date.now())}; again once something moves`
          }
        />
        <Stat label="Backlog" value={number(stats.backlog)} hint="usage events on their way" />
        <Stat label="Held" value={usd(stats.held)} hint="by open calls, when compared" />
      </Stats>
      <Card title="Calls" flush>
        <Table
          caption="Calls by span"
          keyOf={([name]) => name}
          rows={spans}
          columns={[
            { title: 'Span', cell: ([name]) => <span class="nowrap">{name}</span> },
            { title: 'Calls', right: true, cell: ([, sums]) => number(sums.calls) },
            { title: 'Free', right: true, cell: ([, sums]) => number(sums.free_calls) },
            { title: 'Succeeded', right: true, cell: ([, sums]) => share(sums) },
            { title: 'Charged', amount: ([, sums]) => sums.charged },
            { title: 'Given back later', amount: ([, sums]) => sums.refunded },
            { title: 'Fees', amount: ([, sums]) => sums.fees },
          ]}
        />
      </Card>
      <Stats>
        <ByState title="Accounts" path="accounts" counts={stats.accounts} />
        <ByState title="Services" path="services" counts={stats.services} />
        <ByState title="Keys" counts={stats.keys} />
      </Stats>
    </>
  );
}

/** The active ones in large type, the others below; each is a link to its list. */
function ByState({
  title,
  path,
  counts,
}: {
  readonly title: string;
  readonly path?: string;
  readonly counts: Readonly<Record<string, number>>;
}) {
  const { language } = useI18n();
  const linked = (status: string, text: string): ComponentChildren =>
    path === undefined ? text : <a href={`/console/${path}?status=${status}`}>{text}</a>;
  const others = Object.entries(counts).filter(([status]) => status !== 'active');
  return (
    <Stat
      label={`${title} active`}
      value={linked('active', count(counts.active ?? 0, language))}
      hint={others.map(([status, value], at) => (
        <span key={status}>
          {at > 0 && ' · '}
          {linked(status, `${count(value, language)} ${status}`)}
        </span>
      ))}
    />
  );
}
