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
    </div>
  );
}
