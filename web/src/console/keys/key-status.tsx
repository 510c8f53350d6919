import type { Schemas } from '../../api/client.ts';
import { ago, moment } from '../../i18n/format.ts';
import { State } from '../shared/cells.tsx';

/** Whether a key is good, and how long its old secret is. */
export function KeyStatus({
  of: { status, previous_secret_expires_at: until },
  language,
  now,
}: {
  readonly of: Schemas['Key'];
  readonly language: string;
  readonly now: number;
}) {
  if (status === 'revoked') return <State value={status} />;
  const overlaps = until !== null && Date.parse(until) > now;
  return (
    <span class="stack-tight">
      <span>
        <State value={status} />
      </span>
      {overlaps && (
        <span class="small soft" title={moment(until, language)}>
          The old secret ends {ago(until, language, now)}.
        </span>
      )}
    </span>
  );
}
