import './admin.css';
import { money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { Id, shortId } from '../shared/ids.tsx';

// The common parts of the operator's pages.

/** @param label the label of the account; without one its id is shown */
export const AccountLink = ({ id, label = '' }: { readonly id: string; readonly label?: string | null }) =>
  label === null || label === '' ? (
    <Id id={id} href={`/console/accounts/${id}`} />
  ) : (
    <a href={`/console/accounts/${id}`} class="label" title={`${label} (${id})`}>
      {label}
    </a>
  );

/** The label with the id below it: labels are not unique. */
export const Account = ({ id, label }: { readonly id: string; readonly label: string }) => (
  <span class="account">
    <AccountLink id={id} label={label} />
    <code class="below" title={id}>
      {shortId(id)}
    </code>
  </span>
);

/** The fields of an act that are amounts of money. */
const AMOUNTS = new Set(['amount', 'balance', 'payable', 'wallet', 'settled', 'drift', 'refunded', 'carried']);

type Labels = ReadonlyMap<string, string | null>;

/** As the pages name the states of a service. */
const LISTED: Readonly<Record<string, string>> = { active: 'listed', paused: 'not listed' };

/** An account is never paused. */
function inWords(state: Record<string, unknown>, other: Record<string, unknown>): Record<string, unknown> {
  const isService = state.status === 'paused' || other.status === 'paused';
  const word = isService ? LISTED[String(state.status)] : undefined;
  return word === undefined ? state : { ...state, status: word };
}

/** A value of the audit or of a repair, as text. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function Value({ name, value, labels }: { readonly name: string; readonly value: unknown; readonly labels: Labels }) {
  const { language } = useI18n();
  if (name === 'account_id' && typeof value === 'string')
    return <AccountLink id={value} label={labels.get(value) ?? null} />;
  if (name === 'session' && typeof value === 'string') return <Id id={value} />;
  if (AMOUNTS.has(name) && typeof value === 'number') return <>{money(value, language)}</>;
  return <>{shown(value)}</>;
}

/** What changed, one line for each field. @param labels of the accounts that are named beside it */
export function Changes({
  before,
  after,
  labels = new Map(),
}: {
  readonly before: unknown;
  readonly after: unknown;
  readonly labels?: Labels;
}) {
  const [had, has] = [before ?? {}, after ?? {}] as [Record<string, unknown>, Record<string, unknown>];
  const [from, to] = [inWords(had, has), inWords(has, had)];
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])].filter((name) => name !== 'seq');
  if (names.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="changes">
      {names.map((name) => (
        <li key={name}>
          <span class="soft">{name.replaceAll('_', ' ')}</span>{' '}
          {name in from && (
            <>
              <del>
                <Value name={name} value={from[name]} labels={labels} />
              </del>{' '}
              <span aria-hidden="true">→</span>{' '}
            </>
          )}
          {name in to ? (
            <ins>
              <Value name={name} value={to[name]} labels={labels} />
            </ins>
          ) : (
            <span class="faint">removed</span>
          )}
        </li>
      ))}
    </ul>
  );
}
