import { Badge } from '../../design/index.ts';
import { clock, clockHour, date, money } from '../../i18n/format.ts';
import { outcomeOf } from './outcome.ts';

type Recorded = Parameters<typeof outcomeOf>[0];

/** What became of a call, as a badge; the whole sentence is its title. */
export function OutcomeBadge({ call }: { readonly call: Recorded }) {
  const { word, tone, text } = outcomeOf(call);
  return (
    <span title={text}>
      <Badge tone={tone}>{word}</Badge>
    </span>
  );
}

/** `+ $10.00`, `− $0.002`: the sign is said in words, too, to those who cannot see it. */
export function Signed({ amount, language }: { readonly amount: number; readonly language: string }) {
  if (amount === 0) return <span>{money(0, language)}</span>;
  const isIn = amount > 0;
  return (
    <span class={isIn ? 'amount-in' : undefined}>
      <span aria-hidden="true">{isIn ? '+' : '−'} </span>
      <span class="visually-hidden">{isIn ? 'in, ' : 'out, '}</span>
      {money(Math.abs(amount), language)}
    </span>
  );
}

/** Date and time, one below the other where there is little room. @param hour  instead: the sum of an hour, when it began */
export function When({
  at,
  hour,
  language,
}: {
  readonly at: string;
  readonly hour?: string | undefined;
  readonly language: string;
}) {
  return (
    <span class="when number">
      <span>{date(hour ?? at, language)}</span>{' '}
      <span>{hour === undefined ? clock(at, language) : clockHour(hour, language)}</span>
    </span>
  );
}
