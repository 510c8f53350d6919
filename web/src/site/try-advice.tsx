import { useEffect, useState } from 'preact/hooks';
import { useHref } from '../address.tsx';
import type { CallState } from '../calls/send.ts';
import { type Cost, isByUse, mostOf } from '../cost.ts';
import { Button, Note } from '../design/index.ts';
import { ago, money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { webAddress } from '../web-address.ts';
import { parsed } from './service-quote.ts';
import { objectOf } from './service-request.ts';

/** Calls again. @param most  what it may cost, in US dollars; absent: as the form says */
export type Retry = (most?: number) => void;

/** What a failed call means for the caller's money, and what can be done. */
export function TryAdvice({
  state,
  cost,
  onRetry,
}: {
  readonly state: CallState;
  readonly cost: Cost;
  readonly onRetry: Retry;
}) {
  const { t } = useI18n();
  const href = useHref();
  const { phase, response, body } = state;
  // Without an answer there is no id of the call: the list of calls has it.
  const calls = response === null && <a href={href('/console/calls')}>{t('nav.console')}</a>;
  if (phase === 'waiting') return null;
  if (phase === 'cancelled') {
    return (
      <Note tone="warn">
        <span>{t('try.cancelled')}</span> {calls}
      </Note>
    );
  }
  if (phase === 'broken') {
    return (
      <Note tone="bad">
        <span>{t(response === null ? 'try.noAnswer' : 'try.broken')}</span> {calls}
      </Note>
    );
  }
  if (response === null || response.status < 400) return null;
  if (response.usageId === null) {
    const error = objectOf(parsed(body?.text ?? ''));
    const { status, retryAfter } = response;
    return <Refused error={error} status={status} retryAfter={retryAfter} cost={cost} onRetry={onRetry} />;
  }
  if (Number(response.amount) === 0 && response.status >= 500) {
    const reason = { 502: 'try.refund502', 503: 'try.refund503', 504: 'try.refund504' } as const;
    return (
      <Note tone="warn">
        <strong>{t('try.refunded')}</strong>
        <span>{t(reason[response.status as 502] ?? 'try.refund500')}</span>
        {response.retryAfter !== null && <Again seconds={response.retryAfter} onRetry={onRetry} />}
      </Note>
    );
  }
  if (response.status === 408 || response.status === 413) return <Note tone="warn">{t('try.bodyRefused')}</Note>;
  return response.status < 500 ? <Note tone="warn">{t('try.serviceSaidNo')}</Note> : null;
}

/** Statuses whose text is right for every error with that status. */
const STATUSES = [400, 404, 413, 502, 503, 504] as const;

/** Errors whose text may be wrong for other errors with the same status. */
const CODES = new Map<unknown, 401 | 402 | 412 | 429>([
  ['unauthorized', 401],
  ['insufficient_balance', 402],
  ['price_exceeds_maximum', 412],
  ['rate_limited', 429],
]);

/** The gateway refused the call before it was admitted: nothing was sent and nothing is charged. */
function Refused({
  error,
  status,
  retryAfter,
  cost,
  onRetry,
}: {
  readonly error: Readonly<Record<string, unknown>>;
  readonly status: number;
  readonly retryAfter: number | null;
  readonly cost: Cost;
  readonly onRetry: Retry;
}) {
  const { t, language } = useI18n();
  const href = useHref();
  const code = CODES.get(error.error);
  const known = code ?? STATUSES.find((its) => its === status);
  // For the other `CODES` the gateway's message is meant for programs; it is also in the body below.
  const isBudget = error.error === 'budget_exceeded';
  const hasMessage = code === undefined && !isBudget;
  const again = typeof error.resets_at === 'string' ? ago(error.resets_at, language, Date.now()) : null;
  const amount = (value: unknown): string => (typeof value === 'number' ? money(value, language) : '–');
  // A call priced by use may be made for less.
  const left = code === 402 ? error.balance : isBudget ? error.remaining : null;
  const lower =
    isByUse(cost) && typeof left === 'number' && left >= cost.price && left > 0 ? Math.min(left, mostOf(cost)) : null;
  const topUp = webAddress(typeof error.top_up === 'string' ? error.top_up : undefined);
  return (
    <Note tone="bad">
      {hasMessage && (
        <strong class="break">
          {typeof error.message === 'string' ? error.message : t('try.refusedShort', { status: String(status) })}
        </strong>
      )}
      <span>
        {isBudget
          ? t('try.refusedBudget', { remaining: amount(error.remaining) })
          : known === undefined
            ? t('try.refused')
            : t(code === 402 && isByUse(cost) ? 'try.refusedByUse' : `try.refused${known}`, {
                required: amount(error.required),
                balance: amount(error.balance),
                price: amount(error.price),
              })}
        {isBudget && again !== null && ` ${t('try.budgetAgain', { when: again })}`}
      </span>
      {lower !== null && (
        <Button small onClick={() => onRetry(lower)}>
          {t('try.callLower', { price: money(lower, language) })}
        </Button>
      )}
      {code === 402 &&
        (topUp !== null ? (
          <a href={topUp} rel="noopener noreferrer nofollow" target="_blank">
            {t('try.topUp')} ↗
          </a>
        ) : (
          <span>
            <span class="soft">{t('try.topUpAsk')}</span> <a href={href('/console/money')}>{t('try.topUpHow')}</a>
          </span>
        ))}
      {isBudget && <a href={href('/console/keys')}>{t('try.budgetChange')}</a>}
      {code === 401 && <a href={href('/console')}>{t('nav.signIn')}</a>}
      {retryAfter !== null && <Again seconds={retryAfter} onRetry={onRetry} />}
    </Note>
  );
}

/** Counts down the seconds until it makes sense to call again. */
function Again({ seconds, onRetry }: { readonly seconds: number; readonly onRetry: Retry }) {
  const { t } = useI18n();
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    const until = Date.now() + seconds * 1_000;
    const timer = setInterval(() => {
      const rest = Math.max(0, Math.ceil((until - Date.now()) / 1_000));
      setLeft(rest);
      if (rest === 0) clearInterval(timer);
    }, 250);
    return () => clearInterval(timer);
  }, [seconds]);
  return (
    <Button small disabled={left > 0} onClick={() => onRetry()}>
      {left > 0 ? t('try.againIn', { count: left }) : t('try.again')}
    </Button>
  );
}
