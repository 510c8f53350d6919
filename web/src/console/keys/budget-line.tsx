import type { Schemas } from '../../api/client.ts';
import { Badge } from '../../design/index.ts';
import { Bar } from '../../design/more.ts';
import { ago, count, moment, money } from '../../i18n/format.ts';
import { PERIODS } from './draft.ts';

/** A budget: what is spent, what is left, when the next period begins, and how many calls it has refused. */
export function BudgetLine({
  budget: { amount, period, spent, remaining, resets_at: resetsAt, refused },
  leftAbove,
  language,
  now,
}: {
  readonly budget: Schemas['Budget'];
  /** The least that is left of the budgets above its own; null: there is none. */
  readonly leftAbove: number | null;
  readonly language: string;
  readonly now: number;
}) {
  const per = PERIODS.find(([value]) => value === period)?.[1] ?? period;
  return (
    <div class="key-budget">
      <p class="key-budget-text small">
        <span class="number">
          <strong>{money(spent, language)}</strong> spent of {money(amount, language)} {per}
        </span>
        <span class="soft number" title={resetsAt === null ? undefined : moment(resetsAt, language)}>
          {money(remaining, language)} left
          {resetsAt !== null && `, starts again ${ago(resetsAt, language, now)}`}
        </span>
      </p>
      <Bar share={amount > 0 ? spent / amount : 1} isFull={remaining === 0} />
      {leftAbove !== null && leftAbove < remaining && (
        <p class="small">But only {money(leftAbove, language)} is left of a budget above it.</p>
      )}
      {refused > 0 && (
        <p class="small">
          <Badge tone="warn">
            {count(refused, language)} {refused === 1 ? 'call' : 'calls'} refused
          </Badge>{' '}
          <span class="soft">{resetsAt === null ? 'for this budget' : 'in this period'}</span>
        </p>
      )}
    </div>
  );
}
