import { useState } from 'preact/hooks';
import { Button, LinkButton, Note } from '../design/index.ts';
import { ConfirmDialog } from '../design/more.ts';
import { hasKept, unkept } from '../session/unkept.ts';
import { others, session, signOut } from '../session.ts';

/** An account that was opened on the way to a call has one key, which was shown once. */
export function UnkeptNote() {
  const keyId = session.value?.me.key_id ?? '';
  if (!unkept.value.includes(keyId)) return null;
  return (
    <Note tone="warn">
      <span>
        The key of this account was shown once. Without a key that you have kept, the account and its money are lost
        when you sign out.
      </span>
      <span class="row">
        <LinkButton small href="/console/keys">
          Make a key
        </LinkButton>
        <Button small kind="quiet" onClick={() => hasKept(keyId)}>
          I have kept it
        </Button>
      </span>
    </Note>
  );
}

/** Ends all sessions of the browser; asks first where that loses an account. */
export function SignOut() {
  const [asks, setAsks] = useState(false);
  const all = [...(session.value === null ? [] : [session.value]), ...others.value];
  const lost = all.filter(({ me }) => unkept.value.includes(me.key_id));
  return (
    <>
      <Button small onClick={() => (lost.length > 0 ? setAsks(true) : void signOut())}>
        {all.length > 1 ? 'Sign out of all' : 'Sign out'}
      </Button>
      {asks && (
        <ConfirmDialog
          title="Sign out and lose the account?"
          confirm="Sign out all the same"
          danger
          onClose={() => setAsks(false)}
          act={() => signOut()}
        >
          <p>
            Nobody has said that the key of {lost.map(({ me }) => me.owner_id).join(', ')} is kept. It cannot be shown
            again: without it the account and its money are lost. Make a key first, and keep that.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
