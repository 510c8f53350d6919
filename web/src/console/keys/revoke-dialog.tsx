import { dataOf, type Schemas } from '../../api/client.ts';
import { ConfirmDialog, Note } from '../../design/index.ts';
import { api, forget, others } from '../../session.ts';

/** Revokes a key. @param isOwn  it is the key of this tab: the tab loses it */
export function RevokeDialog({
  of,
  isOwn,
  onClose,
  onDone,
}: {
  readonly of: Schemas['Key'];
  readonly isOwn: boolean;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const revoke = async (): Promise<void> => {
    await dataOf(api.value.DELETE('/api/v1/keys/{key_id}', { params: { path: { key_id: of.key_id } } }));
    onDone();
    forget(of.key_id);
  };
  return (
    <ConfirmDialog
      title={isOwn ? 'Revoke the key of this tab?' : 'Revoke this key?'}
      confirm={isOwn ? 'Revoke key and sign out' : 'Revoke key'}
      act={revoke}
      onClose={onClose}
    >
      <p>
        The very next request with <code class="break">{of.key_id}</code> is refused. Calls under way go on. The key
        cannot be taken back into use.
      </p>
      {isOwn && (
        <Note tone="warn">
          {others.value.length > 0
            ? 'You are signed in with this key. The console goes on with the other key of this tab.'
            : 'You are signed in with this key: revoking it signs you out. If you have no other key of this account, nobody can reach its money any more.'}
        </Note>
      )}
    </ConfirmDialog>
  );
}
