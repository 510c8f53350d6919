import { ago, moment } from '../../i18n/format.ts';
import { State } from '../shared/cells.tsx';
import type { KeyNode } from './tree.ts';

/** Whether a key is valid. */
export function KeyStatus({ of: { key, expiresAt }, now }: { readonly of: KeyNode; readonly now: number }) {
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= now;
  return <State value={key.status === 'active' && isExpired ? 'expired' : key.status} />;
}

/** How long a key is valid, and how long its old secret is. */
export function KeyTimes({
  of: { key, expiresAt },
  language,
  now,
}: {
  readonly of: KeyNode;
  readonly language: string;
  readonly now: number;
}) {
  const { previous_secret_expires_at: until } = key;
  const overlaps = until !== null && Date.parse(until) > now;
  return (
    <>
      {expiresAt !== null && (
        <li title={moment(expiresAt, language)}>
          {Date.parse(expiresAt) > now ? 'expires' : 'expired'} {ago(expiresAt, language, now)}
          {expiresAt !== key.expires_at && ', with a key above it'}
        </li>
      )}
      {overlaps && <li title={moment(until, language)}>the old secret ends {ago(until, language, now)}</li>}
    </>
  );
}
