import type { Schemas } from '../../api/client.ts';
import { Bar } from '../../design/index.ts';
import { ago, moment, money } from '../../i18n/format.ts';
import { PERIODS } from './draft.ts';

/** What of a budget is spent, what is left, and when it starts again. */
export function BudgetLine({
  budget: { amount, period, spent, remaining, resets_at: resetsAt },
  language,
  now,
}: {
  readonly budget: Schemas['Budget'];
  readonly language: string;
  readonly now: number;
}) {
  const per = PERIODS.find(([value]) => value === period)?.[1] ?? period;
  return (
    <div class="key-budget">
      <p class="row-between small">
        <span>
          <strong class="number">{money(spent, language)}</strong> spent of{' '}
          <span class="number">{money(amount, language)}</span> {per}
        </span>
        <span class="number">{money(remaining, language)} left</span>
      </p>
      <Bar share={amount > 0 ? spent / amount : 1} isFull={remaining === 0} />
      <p class="small soft">
        {resetsAt === null ? (
          'Does not start again'
        ) : (
          <span title={moment(resetsAt, language)}>Starts again {ago(resetsAt, language, now)}</span>
        )}
      </p>
    </div>
  );
}
