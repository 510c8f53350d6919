import { Note } from '../../design/index.ts';
import { ago, count, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { shortId } from '../shared/ids.tsx';
import type { Usage } from './usage.ts';

/** How long the page points out a refused call. */
const SHOWN_MS = 7 * 86_400_000;

/**
 * The last call that the balance did not cover. No list of calls shows a refused call, and the program that made it may not have
 * reported it.
 *
 * @param balance what the account has now, if known
 * @param isAlone no other note on the page says that the balance is 0
 */
export function RefusedNote({
  usage,
  balance,
  isAlone = false,
}: {
  readonly usage: Usage | null;
  readonly balance?: number | null;
  readonly isAlone?: boolean;
}) {
  const { language } = useI18n();
  const last = usage?.refused?.[0];
  const nowMs = Date.now();
  if (last === undefined || nowMs - Date.parse(last.at) > SHOWN_MS) return null;
  const isCoveredNow = balance != null && balance >= last.required;
  return (
    <Note tone={isCoveredNow || balance === 0 ? 'info' : 'warn'}>
      <span>
        <time dateTime={last.at} title={last.at}>
          {capital(ago(last.at, language, nowMs))}
        </time>
        , a call to <a href={`/services/${last.service_id}`}>{last.service_name}</a> with the key{' '}
        <span title={last.key_id}>{last.label ?? shortId(last.key_id)}</span> was refused: the balance did not cover its{' '}
        {money(last.required, language)}.
        {last.calls > 1 && ` In all, ${count(last.calls, language)} calls were refused for that on that day.`}{' '}
        {isCoveredNow && 'The balance covers it now.'}
        {!isCoveredNow && (balance !== 0 || isAlone) && <a href="/console/money">How to add money</a>}
      </span>
    </Note>
  );
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
