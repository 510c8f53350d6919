import { Badge, FailureNote, Note, SkeletonPage } from '../../../design/index.ts';
import { Card, Stat, Stats, Table, TimeChart } from '../../../design/more.ts';
import { bytes, count, duration, percent } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { codeText } from '../../shared/outcome.ts';
import { PageHead } from '../../shared/page-head.tsx';
import '../admin.css';
import { everySecond, outcomes, recentlyRefused, type Traffic } from './rates.ts';
import { type Live, useTraffic } from './use-traffic.ts';

/** `/console/live`: what all gateways do, second by second. */
export default function LivePage() {
  const live = useTraffic();
  return (
    <>
      <PageHead
        title="Live"
        lead="Calls through all gateways, updated each second. Gateways report only while somebody looks."
        actions={<Sign live={live} />}
      />
      {live.failure !== null && live.state !== 'live' && (
        <>
          <FailureNote failure={live.failure} />
          {live.state === 'lost' && <Note tone="warn">Trying again by itself. What is below is from before.</Note>}
        </>
      )}
      {live.traffic === null ? (
        live.failure === null && <SkeletonPage shape="figures" />
      ) : (
        <Now traffic={live.traffic} live={live} />
      )}
    </>
  );
}

function Sign({ live }: { readonly live: Live }) {
  const text = { connecting: 'Connecting', live: 'Live', lost: 'Not live', refused: 'Not live' }[live.state];
  return (
    <span role="status" class="live-sign">
      <Badge key={text} tone={live.state === 'live' ? 'good' : live.state === 'connecting' ? 'info' : 'bad'}>
        <span class="pulse" aria-hidden="true" />
        {text}
      </Badge>
    </span>
  );
}

function Now({ traffic, live }: { readonly traffic: Traffic; readonly live: Live }) {
  const { language } = useI18n();
  const { totals } = traffic;
  const ms = (value: number | null): string => (value === null ? '–' : duration(value, language));
  const last = live.points.at(-1)?.at ?? Math.round(Date.parse(traffic.at) / 1_000);
  const points = everySecond(live.points, last);
  const times = points.map(({ at }) => at);
  const refused = recentlyRefused(live.points);
  return (
    <>
      <Stats>
        <Stat label="Calls a second" value={count(totals.calls_per_second, language)} hint="ended, last 5 s" />
        <Stat label="p99" value={ms(totals.p99_ms)} hint={`median ${ms(totals.p50_ms)}`} />
        <Stat label="Open calls" value={count(totals.open, language)} hint="under way now" />
        <Stat label="Refused a second" value={count(refused, language)} hint="last 5 s" />
        <Stat label="Gateways" value={count(totals.workers, language)} hint="reporting" />
      </Stats>
      <div class="live-charts">
        <Card title="Calls a second">
          <TimeChart
            label="Calls a second, last two minutes"
            unit="second"
            height={180}
            language={language}
            times={times}
            format={(value) => count(value, language)}
            series={[
              { name: 'Completed', values: points.map(({ rates }) => rates?.completed ?? null) },
              { name: 'Refunded', values: points.map(({ rates }) => rates?.refunded ?? null) },
              { name: 'Refused', values: points.map(({ rates }) => rates?.refused ?? null) },
            ]}
          />
        </Card>
        <Card title="p99 of the last five seconds">
          <TimeChart
            label="p99 latency, last two minutes"
            unit="second"
            height={180}
            language={language}
            times={times}
            format={(value) => duration(value, language)}
            series={[{ name: 'p99', values: points.map(({ p99 }) => p99) }]}
          />
        </Card>
      </div>
      <Workers traffic={traffic} ms={ms} />
      <Outcomes traffic={traffic} />
    </>
  );
}

function Workers({ traffic, ms }: { readonly traffic: Traffic; readonly ms: (value: number | null) => string }) {
  const { language } = useI18n();
  return (
    <Card flush title="By worker">
      <div class="live-workers">
        <Table
          caption="Traffic by worker"
          keyOf={({ instance }) => instance}
          rows={traffic.workers}
          columns={[
            {
              title: 'Worker',
              cell: ({ host, worker, instance }) => (
                <span title={instance}>
                  {host} <span class="soft">#{worker}</span>
                </span>
              ),
            },
            { title: 'Calls/s', right: true, cell: ({ recent }) => count(recent?.calls_per_second ?? 0, language) },
            { title: 'p99', right: true, cell: ({ recent }) => ms(recent?.p99_ms ?? null) },
            { title: 'Open', right: true, cell: ({ calls }) => count(calls.open, language) },
            { title: 'Completed', right: true, cell: ({ calls }) => count(calls.completed, language) },
            { title: 'Refunded', right: true, cell: ({ calls }) => count(total(calls.refunded), language) },
            { title: 'Refused', right: true, cell: ({ calls }) => count(total(calls.refused), language) },
            { title: 'Loop delay', right: true, cell: (row) => ms(row.event_loop_delay_ms) },
            { title: 'CPU', right: true, cell: ({ cpu }) => (cpu === null ? '–' : percent(cpu, language)) },
            { title: 'Memory', right: true, cell: (row) => bytes(row.memory_bytes, language) },
          ]}
        />
      </div>
    </Card>
  );
}

function Outcomes({ traffic }: { readonly traffic: Traffic }) {
  const { language } = useI18n();
  const rows = outcomes(traffic).filter(([, , calls]) => calls > 0);
  return (
    <Card flush title="How calls ended since the workers started">
      {rows.length === 0 ? (
        <p class="quiet">No calls yet. They show here as soon as one ends.</p>
      ) : (
        <Table
          caption="Calls by outcome"
          keyOf={([kind, name]) => `${kind} ${name}`}
          rows={rows}
          columns={[
            {
              title: 'Outcome',
              cell: ([kind]) => (
                <Badge tone={kind === 'completed' ? 'good' : kind === 'refunded' ? 'warn' : 'plain'}>{kind}</Badge>
              ),
            },
            {
              title: 'Reason',
              cell: ([, name]) =>
                name === '' ? <span class="faint">–</span> : <span title={name}>{codeText(name)}</span>,
            },
            { title: 'Calls', right: true, cell: ([, , calls]) => count(calls, language) },
          ]}
        />
      )}
    </Card>
  );
}

const total = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, value) => sum + value, 0);
