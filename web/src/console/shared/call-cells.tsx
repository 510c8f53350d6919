import { Badge } from '../../design/index.ts';
import { clock, clockHour, date, moment, money } from '../../i18n/format.ts';
import { outcomeOf } from './outcome.ts';

type Recorded = Parameters<typeof outcomeOf>[0];

/** What became of a call: a badge and, of a refund, why. The whole sentence is its title. @param brief  the badge alone */
export function OutcomeBadge({ call, brief = false }: { readonly call: Recorded; readonly brief?: boolean }) {
  const { word, reason, tone, text } = outcomeOf(call);
  return (
    <span class="outcome" title={text}>
      <Badge tone={tone}>{word}</Badge>
      {reason !== null && <span class={brief ? 'visually-hidden' : 'small soft'}>{reason}</span>}
    </span>
  );
}

/** `+ $10.00`, `− $0.002`: the sign is said in words, too, to those who cannot see it. */
export function Signed({
  amount,
  language,
  digits,
}: {
  readonly amount: number;
  readonly language: string;
  readonly digits: number;
}) {
  if (amount === 0) return <span>{money(0, language, digits)}</span>;
  const isIn = amount > 0;
  return (
    <span class={isIn ? 'amount-in' : undefined}>
      <span aria-hidden="true">{isIn ? '+' : '−'} </span>
      <span class="visually-hidden">{isIn ? 'in, ' : 'out, '}</span>
      {money(Math.abs(amount), language, digits)}
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
    <span class="when number" title={moment(hour ?? at, language)}>
      <span>{date(hour ?? at, language, Date.now())}</span>{' '}
      <span>{hour === undefined ? clock(at, language) : clockHour(hour, language)}</span>
    </span>
  );
}
