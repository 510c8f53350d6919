import { useState } from 'preact/hooks';
import { Badge, Button, Check, Dialog } from '../design/index.ts';
import { isRemembered, others, remember, session, signOut, switchTo } from '../session.ts';
import { WithKey } from './sign-in.tsx';

/** Whose key this tab uses, the other keys that it has, and the way out. */
export function Who() {
  const [adding, setAdding] = useState(false);
  // Folded on phones, where the work should come first.
  const [isOpen] = useState(() => matchMedia('(min-width: 52.01rem)').matches);
  const me = session.value?.me;
  if (me === undefined) return null;
  return (
    <details class="who-card small" open={isOpen}>
      <summary>
        <span class="who-name" title={me.owner_id}>
          {me.owner_id}
        </span>
        <Badge>{me.role}</Badge>
      </summary>
      <div class="who-body">
        <code class="faint break">{me.key_id}</code>
        <Check
          label="Keep the key on a reload of this tab"
          checked={isRemembered()}
          onChange={(event) => remember(event.currentTarget.checked)}
        />
        {others.value.length > 0 && (
          <>
            <span class="soft">Switch to another key of this tab</span>
            <ul class="who-others">
              {others.value.map((other) => (
                <li key={other.me.key_id}>
                  <button type="button" class="who-other" onClick={() => switchTo(other)}>
                    <span class="who-name">{other.me.owner_id}</span>
                    <span class="faint">
                      {other.me.role} · …{other.me.key_id.slice(-6)}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
        <div class="row who-acts">
          <Button small onClick={() => setAdding(true)}>
            Use another key
          </Button>
          <Button small onClick={signOut}>
            Sign out
          </Button>
        </div>
      </div>
      {adding && (
        <Dialog title="Use another key" onClose={() => setAdding(false)}>
          <p class="soft">The present key stays in this tab: you can switch between the two.</p>
          <WithKey submit="Use this key" onDone={() => setAdding(false)} />
        </Dialog>
      )}
    </details>
  );
}
