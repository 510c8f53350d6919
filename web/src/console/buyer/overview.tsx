import './buyer.css';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, Empty, FailureNote, LinkButton, Note, SkeletonCard } from '../../design/index.ts';
import { Card, Stat, Stats } from '../../design/more.ts';
import { count, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { leftHint } from '../money/wallet.tsx';
import { lastDays } from '../shared/days.ts';
import { PageHead } from '../shared/page-head.tsx';
import { BudgetNote, useBudgets } from './budget-note.tsx';
import { LastCalls } from './last-calls.tsx';
import { daysLeft } from './lasts.ts';
import { RefusedNote } from './refused-note.tsx';
import { SpendingChart } from './spending-chart.tsx';
import { StartHere } from './start-here.tsx';
import { TopKeys, TopServices, TopTags } from './top-spending.tsx';
import { type Usage, usageOf, whose } from './usage.ts';

const LAST_CALLS = 6;
/** If the balance lasts for fewer days than this, the page points it out. */
const FEW_DAYS = 7;

/** `/console` of a buyer: the balance, the spending, and what to do next. */
export default function Overview() {
  const nowMs = Date.now();
  const days = lastDays(30, nowMs);
  const from = days[0] ?? '';
  const balance = useResource('balance', (signal) => dataOf(api.value.GET('/api/v1/balance/me', { signal })));
  const usage = useResource(`usage ${from}`, (signal) => usageOf({ from, limit: LAST_CALLS }, signal));
  const budgets = useBudgets();
  const failure = balance.failure ?? usage.failure ?? budgets.failure;
  const reload = (): void => {
    balance.reload();
    usage.reload();
    budgets.reload();
  };
  const lasts =
    balance.data === null || usage.data === null
      ? null
      : daysLeft(balance.data.balance, days, usage.data.by_day, nowMs);
  // The content above the chart depends on all three, so that the chart does not move once it is drawn.
  const isKnown = balance.data !== null && usage.data !== null && (budgets.data !== null || budgets.failure !== null);
  const isChild = session.value?.me.parent_key_id !== undefined;
  // What a budget leaves is more again when its period ends.
  const resetsAt = balance.data?.resets_at ?? null;
  const startsAgainFirst =
    lasts !== null && resetsAt !== null && Date.parse(resetsAt) - nowMs < (lasts.days + 1) * 86_400_000;
  const isNew = usage.data?.total_calls === 0 && session.value?.me.last_used_at === null;
  const what = isChild ? 'what is left for this key' : 'the balance';
  return (
    <>
      <PageHead
        title="Overview"
        lead={`Balance, calls and spending of ${whose()}.`}
        actions={
          <>
            {!isChild && session.value?.me.account_status !== 'suspended' && (
              <LinkButton href="/console/money">Add money</LinkButton>
            )}
            <Button busy={balance.loading || usage.loading} onClick={reload}>
              Refresh
            </Button>
          </>
        }
      />
      {failure !== null && <FailureNote failure={failure} retry={reload} />}
      <Figures balance={balance.data} usage={usage.data} days={days} />
      {isKnown && !isNew && balance.data?.balance === 0 && (
        <Note tone="warn">
          <span>
            {isChild ? 'Nothing is left for this key.' : 'The account has no money left.'} Calls that cost something are
            refused until{' '}
            {isChild ? 'its budget starts again or is raised, and the account has money' : 'money is added'}; free calls
            go on. <More isChild={isChild} />
          </span>
        </Note>
      )}
      {isKnown && lasts !== null && lasts.days < FEW_DAYS && !startsAgainFirst && (balance.data?.balance ?? 0) > 0 && (
        <Note tone="warn">
          <span>
            At the pace of {lasts.observed === 1 ? 'today so far' : `the last ${lasts.observed} days`}, {what}{' '}
            {lasts.days === 0
              ? 'does not last for another day'
              : `lasts about ${lasts.days} ${lasts.days === 1 ? 'day' : 'days'}`}
            . <More isChild={isChild} />
          </span>
        </Note>
      )}
      {isKnown && !isNew && <BudgetNote keys={budgets.data?.keys ?? []} />}
      {isKnown && <RefusedNote usage={usage.data} balance={balance.data?.balance ?? null} />}
      {isKnown && isNew && <StartHere balance={balance.data?.balance ?? null} isChild={isChild} />}
      {!isKnown && failure === null && <SpendingWaiting />}
      {!isNew && (isKnown || failure !== null) && (
        <>
          {/* Without an answer an empty chart would say that nothing was spent. */}
          {(usage.data !== null || usage.failure === null) && <SpendingChart usage={usage.data} />}
          {usage.data !== null && (
            <div class="overview-pair">
              <div class="overview-column">
                <TopServices usage={usage.data} />
                {usage.data.by_key.length > 1 && <TopKeys usage={usage.data} from={from} />}
                {(usage.data.by_tag ?? []).length > 0 && <TopTags usage={usage.data} from={from} />}
              </div>
              <Card
                title="Last calls"
                flush
                actions={
                  <LinkButton kind="quiet" small href="/console/calls">
                    All calls
                  </LinkButton>
                }
              >
                {usage.data.records.length === 0 ? (
                  <Empty title="No calls in 30 days" action={<LinkButton href="/">Find a service</LinkButton>}>
                    Earlier calls are in the list of all calls.
                  </Empty>
                ) : (
                  <LastCalls calls={usage.data.records} />
                )}
              </Card>
            </div>
          )}
        </>
      )}
    </>
  );
}

/** A link to what helps. A child key gets its budget, because added money helps it only as far as that allows. */
const More = ({ isChild }: { readonly isChild: boolean }) =>
  isChild ? <a href="/console/keys">Its budget</a> : <a href="/console/money">How to add money</a>;

const SpendingWaiting = () => (
  <>
    <SkeletonCard lines={9} />
    <SkeletonCard lines={8} />
  </>
);

function Figures({
  balance,
  usage,
  days,
}: {
  readonly balance: Schemas['Balance'] | null;
  readonly usage: Usage | null;
  readonly days: readonly string[];
}) {
  const { language } = useI18n();
  /** What calls of the last days were charged, and what was given back of it. */
  const spent = (last: number, hint: string): { readonly value: string; readonly hint: string } => {
    if (usage === null) return { value: '…', hint };
    const first = days.at(-last) ?? '';
    const within = usage.by_day.filter(({ day }) => day >= first);
    // In micro-USD, so that no sum shows floating-point errors.
    const sum = (amounts: readonly number[]): number =>
      amounts.reduce((micros, usd) => micros + Math.round(usd * 1e6), 0) / 1e6;
    const back = sum(within.map(({ refunded = 0 }) => refunded));
    // One line: a second one would move what is below.
    const told = back === 0 ? hint : `${money(back, language)} of it given back`;
    return { value: money(sum(within.map((day) => day.spent)), language), hint: told };
  };
  const held = balance?.held ?? 0;
  const isChild = session.value?.me.parent_key_id !== undefined;
  return (
    <Stats>
      <Stat
        label={isChild ? 'Left for this key' : 'Balance'}
        value={balance === null ? '…' : money(balance.balance, language)}
        hint={
          balance !== null && held > 0
            ? `${money(held, language)} held by calls`
            : isChild
              ? leftHint(balance, language)
              : balance === null
                ? '\u00a0'
                : 'nothing is held'
        }
      />
      <Stat label="Spent today" {...spent(1, 'since 00:00 UTC')} />
      <Stat label="Spent in 7 days" {...spent(7, 'today included')} />
      <Stat label="Spent in 30 days" {...spent(30, 'today included')} />
      <Stat
        label="Calls in 30 days"
        value={usage === null ? '…' : count(usage.total_calls, language)}
        hint={usage === null ? '\u00a0' : `${count(usage.free_calls, language)} used a free call`}
      />
    </Stats>
  );
}
