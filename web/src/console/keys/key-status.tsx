import type { Schemas } from '../../api/client.ts';
import { Badge } from '../../design/index.ts';
import { ago, moment } from '../../i18n/format.ts';

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
  if (status === 'revoked') return <Badge tone="bad">Revoked</Badge>;
  const overlaps = until !== null && Date.parse(until) > now;
  return (
    <span class="stack-tight">
      <span>
        <Badge tone="good">Active</Badge>
      </span>
      {overlaps && (
        <span class="small soft" title={moment(until, language)}>
          The old secret ends {ago(until, language, now)}.
        </span>
      )}
    </span>
  );
}
