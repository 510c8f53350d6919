import './admin.css';
import { Badge, type Tone } from '../../design/index.ts';
import { money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { shortMoment } from './measures.ts';

// What the operator's pages have in common.

const TONES: Readonly<Record<string, Tone>> = {
  active: 'good',
  suspended: 'warn',
  paused: 'warn',
  closed: 'plain',
  revoked: 'plain',
  removed: 'plain',
  completed: 'good',
  abandoned: 'bad',
  begun: 'info',
  done: 'good',
  left: 'warn',
};

/** A state, or the outcome of a call. */
export const State = ({ value }: { readonly value: string }) => (
  <Badge tone={TONES[value] ?? (value.startsWith('refunded') ? 'warn' : 'plain')}>
    {value.replace(':', ': ').replaceAll('_', ' ')}
  </Badge>
);

export function When({ at }: { readonly at: string }) {
  const { language } = useI18n();
  return (
    <time dateTime={at} title={at} class="when">
      {shortMoment(at, language)}
    </time>
  );
}

/** Ids begin with the time, so their ends tell them apart. */
export const shortId = (id: string): string => (id.length > 16 ? `…${id.slice(-8)}` : id);

export const Id = ({ id, href }: { readonly id: string; readonly href?: string }) =>
  href === undefined ? (
    <code class="id" title={id}>
      {shortId(id)}
    </code>
  ) : (
    <a href={href} class="id" title={id}>
      <code>{shortId(id)}</code>
    </a>
  );

/** @param label  what people call the account; without one its id stands there */
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

/** A value of the audit or of a repair, as text. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  const { language } = useI18n();
  if (name === 'account_id' && typeof value === 'string') return <AccountLink id={value} />;
  if (name === 'amount' && typeof value === 'number') return <>{money(value, language)}</>;
  return <>{shown(value)}</>;
}

/** What changed, one line for each field. */
export function Changes({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const [from, to] = [before, after].map((side) => (side ?? {}) as Record<string, unknown>) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ];
  const names = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  if (names.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="changes">
      {names.map((name) => (
        <li key={name}>
          <span class="soft">{name.replaceAll('_', ' ')}</span>{' '}
          {name in from && (
            <>
              <del>
                <Value name={name} value={from[name]} />
              </del>{' '}
              <span aria-hidden="true">→</span>{' '}
            </>
          )}
          {name in to ? (
            <ins>
              <Value name={name} value={to[name]} />
            </ins>
          ) : (
            <span class="faint">removed</span>
          )}
        </li>
      ))}
    </ul>
  );
}
