import { Badge, type Tone } from '../../design/index.ts';
import { hasFewBuyers } from '../../few-buyers.ts';
import { clockRange, count, date, moment, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { outcomeOf } from './outcome.ts';

// Cells that tables of several rooms share.

type Recorded = Parameters<typeof outcomeOf>[0];

/**
 * How a call ended: a badge and, for a refund, the reason. The whole sentence is its title.
 *
 * @param brief only the badge
 * @param side   who reads it: the buyer, or somebody else
 */
export function OutcomeBadge({
  call,
  brief = false,
  side = 'buyer',
}: {
  readonly call: Recorded;
  readonly brief?: boolean;
  readonly side?: 'buyer' | 'others';
}) {
  const { word, reason, tone, text } = outcomeOf(call, side);
  return (
    <span class="outcome" title={text}>
      <Badge tone={tone}>{word}</Badge>
      {reason !== null && <span class={brief ? 'visually-hidden' : 'small soft'}>{reason}</span>}
    </span>
  );
}

/** How often the answer of a call was repeated. */
export function AskedFor({ call: { replays } }: { readonly call: { readonly replays?: number } }) {
  const { language } = useI18n();
  if (replays === undefined) return null;
  return (
    <span class="small soft" title="Repeats with the same Idempotency-Key got its answer again, and cost nothing.">
      asked for {count(replays + 1, language)} times
    </span>
  );
}

type Judged = { readonly quality: number; readonly rated: boolean } & Parameters<typeof hasFewBuyers>[0];

/** The quality of a service, how few have judged it, or that no calls went into it. */
export const QualityOf = ({ service }: { readonly service: Judged }) =>
  !service.rated ? (
    <>Not rated</>
  ) : (
    <span class="amount-lines">
      <span>{service.quality.toFixed(1)}</span>
      {hasFewBuyers(service) && <span class="faint small nowrap">few buyers</span>}
    </span>
  );

/** A column for lists of services. It also shows the uptime, which is not part of the quality. */
export const uptimeText = ({ uptime }: { readonly uptime?: { readonly last_30_days: number } | undefined }): string =>
  uptime === undefined ? '–' : `${uptime.last_30_days}%`;

/**
 * An amount of a call; for a call priced by use, also the most it could cost.
 *
 * @param text  the amount
 * @param charged what the call cost its buyer, if the amount is its provider's share
 */
export function ByUse({
  call: { authorized, clamped },
  text,
  charged,
}: {
  readonly call: { readonly authorized?: number; readonly clamped?: boolean };
  readonly text: string;
  readonly charged?: number;
}) {
  const { language } = useI18n();
  if (authorized === undefined) return <>{text}</>;
  const cost = charged === undefined ? '' : `charged ${money(charged, language)} `;
  const most = `${cost}of at most ${money(authorized, language)}`;
  return (
    <span class="amount-lines">
      <span>{text}</span>
      <span class="faint small nowrap" title={clamped ? 'The service reported more than it may charge.' : undefined}>
        {clamped ? `${most}, more reported` : most}
      </span>
    </span>
  );
}

const TONES: Readonly<Record<string, Tone>> = {
  active: 'good',
  listed: 'good',
  suspended: 'warn',
  paused: 'warn',
  expired: 'warn',
  revoked: 'bad',
  begun: 'info',
  done: 'good',
  left: 'warn',
  refused: 'bad',
};

/** States whose word in the API says less. A draft of a service, too, is paused. */
const WORDS: Readonly<Record<string, string>> = { paused: 'not listed' };

/** The state of an account, a service, a key, a repair or an act. */
export function State({ value }: { readonly value: string }) {
  const word = (WORDS[value] ?? value).replaceAll('_', ' ');
  return <Badge tone={TONES[value] ?? 'plain'}>{word.charAt(0).toUpperCase() + word.slice(1)}</Badge>;
}

/** A service that is active is listed. */
export const ServiceState = ({ value }: { readonly value: string }) => (
  <State value={value === 'active' ? 'listed' : value} />
);

/** `+ $10.00`, `− $0.002`: the sign is said in words, too, to those who cannot see it. @param text  the amount without its sign */
export function Signed({ amount, text }: { readonly amount: number; readonly text: string }) {
  if (amount === 0) return <span>{text}</span>;
  const isIn = amount > 0;
  return (
    <span class={isIn ? 'amount-in' : undefined}>
      <span aria-hidden="true">{isIn ? '+' : '−'} </span>
      <span class="visually-hidden">{isIn ? 'in, ' : 'out, '}</span>
      {text}
    </span>
  );
}

/**
 * Date and time, one below the other if there is little room. @param from for a sum of calls: when the first began; the last began
 * at `at`
 */
export function When({ at, from = at }: { readonly at: string; readonly from?: string | undefined }) {
  const { language } = useI18n();
  const whole = from === at ? moment(at, language) : `${moment(from, language)} to ${moment(at, language)}`;
  return (
    <time class="when number" dateTime={at} title={`${whole} (${at})`}>
      <span>{date(at, language, Date.now())}</span> <span>{clockRange(from, at, language)}</span>
    </time>
  );
}
