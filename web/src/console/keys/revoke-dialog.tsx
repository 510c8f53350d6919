import { dataOf } from '../../api/client.ts';
import { Note } from '../../design/index.ts';
import { ConfirmDialog } from '../../design/more.ts';
import { api, forget, others } from '../../session.ts';
import { shortId } from '../shared/ids.tsx';
import type { Key } from './tree.ts';

/**
 * Revokes a key and those below it.
 *
 * @param below  the active keys below it
 * @param isOwn  this tab is signed in with it
 * @param left   the active keys without a parent that remain
 */
export function RevokeDialog({
  of,
  below,
  isOwn,
  left = [],
  onClose,
  onDone,
}: {
  readonly of: Key;
  readonly below: readonly Key[];
  readonly isOwn: boolean;
  readonly left?: readonly Key[];
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const revoke = async (): Promise<void> => {
    await dataOf(api.value.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: of.key_id } } }));
    onDone();
    for (const key of [...below, of]) forget(key.key_id);
  };
  const lost = new Set(below.map(({ key_id: id }) => id));
  const goesOn = others.value.some(({ me }) => !lost.has(me.key_id));
  const what = below.length === 0 ? 'key' : `${below.length + 1} keys`;
  const also =
    below.length === 0 ? '' : below.length === 1 ? ' and the key below it' : ` and the ${below.length} below it`;
  return (
    <ConfirmDialog
      title={`${isOwn ? 'Revoke the key you are signed in with' : 'Revoke this key'}${also}?`}
      confirm={isOwn ? `Revoke ${what} and sign out` : `Revoke ${what}`}
      act={revoke}
      onClose={onClose}
    >
      <p>
        The very next request with {of.label !== undefined && `${of.label}, `}
        <code class="break">{of.key_id}</code>
        {below.length > 0 && ', or with a key below it,'} is refused. Calls under way go on.{' '}
        {below.length > 0 ? 'The keys' : 'The key'} cannot be taken back into use.
      </p>
      {isOwn && (
        <Note tone="warn">
          {goesOn
            ? 'You are signed in with this key. The console goes on with another account that is signed in here.'
            : `You are signed in with this key: revoking it signs you out. ${remains(left)}`}
        </Note>
      )}
    </ConfirmDialog>
  );
}

function remains([first, ...more]: readonly Key[]): string {
  if (first === undefined) return 'It is the last of this account: nobody can reach its money any more.';
  const name = first.label ?? shortId(first.key_id);
  const others = more.length === 0 ? '' : ` and ${more.length} more`;
  return `The account still has the key ${name}${others}: sign in with one that you have kept.`;
}
