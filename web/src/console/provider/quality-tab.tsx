import type { Schemas } from '../../api/client.ts';
import { Empty, FailureNote, SkeletonPage } from '../../design/index.ts';
import { Card, Stat, Stats, TimeChart } from '../../design/more.ts';
import { ago, count, duration, percent } from '../../i18n/format.ts';
import { lastDays, secondsOf } from '../shared/days.ts';
import { useStats } from './calls-tab.tsx';
import type { TabProps } from './service-frame.tsx';
import { EN } from './service-words.tsx';

type Stats30 = Schemas['ServiceStats'];
type Inputs = NonNullable<Stats30['quality_inputs']>;
/** docs/quality.md: 20 imaginary calls, half of which succeeded. */
const PRIOR = 20;

/** `/console/services/{id}/quality`: the number, its evidence, and what would raise it. */
export function QualityTab({ service }: TabProps) {
  const { data, failure, reload } = useStats(service.id);
  if (data === null)
    return failure === null ? <SkeletonPage shape="figures" /> : <FailureNote failure={failure} retry={reload} />;
  return (
    <>
      {/* Mistakes of callers are no evidence. */}
      {data.quality_inputs === null || data.quality_inputs.evidence === 0 ? (
        <Card>
          <Empty title="Quality 50: nothing is known yet">
            Every service begins in the middle. A minute after the first calls that count, the number follows them.
          </Empty>
        </Card>
      ) : (
        <Judged id={service.id} quality={data.quality} inputs={data.quality_inputs} />
      )}
      {data.days.length > 0 && <RateByDay stats={data} />}
      <Formula />
    </>
  );
}

function Judged({ id, quality, inputs }: { readonly id: string; readonly quality: number; readonly inputs: Inputs }) {
  const success = (inputs.evidence * inputs.success_rate + PRIOR / 2) / (inputs.evidence + PRIOR);
  const fromSuccess = 90 * success;
  const fromSpeed = Math.max(0, quality - fromSuccess);
  return (
    <>
      <Stats>
        <Stat label="Quality" value={quality.toFixed(1)} hint="of 100" />
        <Stat label="From successes" value={fromSuccess.toFixed(1)} hint="of 90" />
        <Stat label="From speed" value={fromSpeed.toFixed(1)} hint="of 10" />
      </Stats>
      <Card title="What went into it">
        <dl class="facts">
          <dt>Buyers</dt>
          <dd>
            {count(inputs.buyers, EN)} {inputs.buyers === 1 ? 'account' : 'accounts'} called it. Each has one voice,
            however often it calls.
          </dd>
          <dt>Evidence</dt>
          <dd>
            {inputs.evidence.toFixed(1)}: their calls, by age and buyer. {PRIOR} calls that nobody made are added, half
            of them good, so a service with little evidence stays near the middle.
          </dd>
          <dt>Success</dt>
          <dd>{percent(inputs.success_rate, EN)} of that evidence. A call weighs half after five days.</dd>
          <dt>Speed</dt>
          <dd>
            {inputs.latency_ms === null
              ? 'No success yet whose time could be measured.'
              : `Typical latency ${duration(inputs.latency_ms, EN)}, as buyers see it: to the last byte, averaged over buyers. It is compared with the services of your category.`}
          </dd>
          <dt>Judged</dt>
          <dd>{ago(inputs.computed_at, EN, Date.now())}</dd>
        </dl>
        <p class="small advice">
          {adviceOf(inputs)}{' '}
          {inputs.success_rate < 1 && (
            <>
              <a href={`/console/services/${id}/calls?outcome=failed`}>See which calls failed</a>; calls that you gave
              back whole count, too.
            </>
          )}
        </p>
      </Card>
    </>
  );
}

/** What would raise it most. */
function adviceOf({ success_rate: rate, evidence, buyers }: Inputs): string {
  if (rate < 0.95) return 'What would raise it most: fewer failures.';
  if (evidence < PRIOR || buyers < 10) return 'What would raise it most: more buyers. Free calls let them try it.';
  return 'It works well for many. What is left is speed.';
}

function RateByDay({ stats }: { readonly stats: Stats30 }) {
  const days = lastDays(30);
  const rates = new Map(stats.days.map(({ day, success_rate: share }) => [day, share]));
  return (
    <Card title="Success by day">
      <TimeChart
        label="Share of calls that succeeded, by day"
        times={days.map(secondsOf)}
        series={[{ name: 'Succeeded', kind: 'bar', values: days.map((day) => rates.get(day) ?? null) }]}
        format={(share) => percent(share, EN)}
        top={1}
        height={160}
      />
    </Card>
  );
}

function Formula() {
  return (
    <Card title="What counts">
      <div class="stack small" id="formula">
        <p>
          Success counts nine times as much as speed. In a catalog a service rises as more buyers find it good. Nobody
          can buy or set its quality.
        </p>
        <dl class="facts">
          <dt>Success</dt>
          <dd>an answer below 400</dd>
          <dt>Failure</dt>
          <dd>no connection, no answer in time, an answer that breaks off, 5xx, your own credentials refused</dd>
          <dt>Neither</dt>
          <dd>4xx, callers who left, faults of the gateway, your own calls</dd>
        </dl>
        <p>
          A call weighs half after 5 days, and nothing after 30. However often one buyer calls, all these calls together
          weigh no more than five.
        </p>
        <details class="disclosure">
          <summary>The formula</summary>
          <ul class="plain-list">
            <li>Quality = 100 × (0.9 × success + 0.1 × speed).</li>
            <li>All n calls of one buyer weigh v = n × 5 / (n + 5) together: never more than 5.</li>
            <li>success = (Σ v × p + 10) / (Σ v + 20), where p is the share of a buyer's calls that succeeded.</li>
            <li>
              speed compares your mean latency with the median of your category: s = median / (latency + median), then
              (Σ v × s + 10) / (Σ v + 20).
            </li>
            <li>
              The order of catalogs has e − 1.28 × √(e × (1 − e) / (Σ v + 5)) in place of success, where e = (Σ v × p +
              2) / (Σ v + 4).
            </li>
          </ul>
        </details>
      </div>
    </Card>
  );
}
