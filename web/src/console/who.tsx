import { useState } from 'preact/hooks';
import { Badge, Button, FailureNote } from '../design/index.ts';
import { Check, Dialog } from '../design/more.ts';
import { isRemembered, type Other, others, remember, session, switchTo } from '../session.ts';
import { Id, shortId } from './shared/ids.tsx';
import { NewAccount, WithKey } from './sign-in.tsx';
import { SignOut } from './unkept-note.tsx';

/** Who is signed in, other signed-in accounts, and the way to sign out. */
export function Who() {
  const [adding, setAdding] = useState<'key' | 'account' | null>(null);
  const close = (): void => setAdding(null);
  const [failure, setFailure] = useState<unknown>(null);
  // Folded on phones, where the work should come first.
  const [isOpen] = useState(() => matchMedia('(min-width: 52.01rem)').matches);
  const now = session.value;
  if (now === null) return null;
  const { me } = now;
  const change = (other: Other): void => {
    setFailure(null);
    switchTo(other).catch(setFailure);
  };
  return (
    <details class="who-card small" open={isOpen}>
      <summary>
        <span class="who-name" title={me.owner_id}>
          {me.owner_id}
        </span>
        <Badge>{me.role}</Badge>
      </summary>
      <div class="who-body">
        {me.label !== undefined && <span class="break">{me.label}</span>}
        <span class="faint">
          Key <Id id={me.key_id} />
        </span>
        {now.id === null ? (
          <Check
            label="Keep the key on a reload of this tab"
            checked={isRemembered()}
            onChange={(event) => remember(event.currentTarget.checked)}
          />
        ) : (
          <a href="/console/sessions">Sessions</a>
        )}
        {others.value.length > 0 && (
          <>
            <span class="soft">Switch to</span>
            <ul class="who-others">
              {others.value.map((other) => (
                <li key={other.me.key_id}>
                  <button type="button" class="who-other" onClick={() => change(other)}>
                    <span class="who-name">{other.me.owner_id}</span>
                    <span class="faint">
                      {other.me.role} · {other.me.label ?? shortId(other.me.key_id)}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
        {failure !== null && <FailureNote failure={failure} />}
        <div class="row who-acts">
          <Button small onClick={() => setAdding('key')}>
            Use another key
          </Button>
          <Button small onClick={() => setAdding('account')}>
            Open another account
          </Button>
          <SignOut />
        </div>
      </div>
      {adding !== null && (
        <Dialog title={adding === 'key' ? 'Use another key' : 'Open another account'} onClose={close}>
          <p class="soft">The account that is signed in now stays signed in: you can switch between the two.</p>
          {adding === 'key' ? (
            <WithKey submit="Use this key" onDone={close} onCancel={close} />
          ) : (
            <NewAccount onDone={close} onCancel={close} />
          )}
        </Dialog>
      )}
    </details>
  );
}
