import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { useAddress } from '../address.tsx';
import { ApiFailure, type Schemas } from '../api/client.ts';
import { useArrival } from '../arrival.ts';
import { Button, FailureNote, Note } from '../design/index.ts';
import { Card, Check, Select, TextInput } from '../design/more.ts';
import { useFact } from '../first-data.ts';
import { canKeep, createAccount, signIn, wasEnded } from '../session.ts';
import { KeyShownOnce } from './shared/secret-shown-once.tsx';

/** Shown when nobody is signed in: enter a key, or open a new account. */
export function SignIn() {
  const arrival = useArrival();
  return (
    <div class="page sign-in">
      <div class="stack-tight">
        <h1 {...arrival}>Console</h1>
        <p class="soft">
          Sign in with an API key. A buyer key shows what you spend, a provider key what you sell, an admin key how the
          marketplace runs.
        </p>
      </div>
      {wasEnded.value && (
        <Note tone="warn">
          You were signed out here: the key was revoked or rotated, or this session was ended elsewhere or expired.
        </Note>
      )}
      <Card title="Sign in">
        <WithKey submit="Sign in" />
      </Card>
      <Card title="Open an account">
        <NewAccount />
      </Card>
    </div>
  );
}

const WRONG_KEY =
  'This gateway does not take this key. Was it copied whole, is it of this gateway, and was it not revoked or rotated?';

/**
 * Asks for a key, and signs in with it.
 *
 * @param onDone   called after that
 * @param onCancel in a dialog
 */
export function WithKey({
  submit,
  onDone,
  onCancel,
}: {
  readonly submit: string;
  readonly onDone?: () => void;
  readonly onCancel?: () => void;
}) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const send = async (form: HTMLFormElement): Promise<void> => {
    const values = new FormData(form);
    setBusy(true);
    setFailure(null);
    try {
      await signIn(String(values.get('key')), values.get('remember') !== null);
      onDone?.();
    } catch (error) {
      const isWrong = error instanceof ApiFailure && error.status === 401;
      setFailure(isWrong ? new ApiFailure('unauthorized', WRONG_KEY, 0, null) : error);
      setBusy(false);
    }
  };
  return (
    // `post`: if the script fails, the browser must not put the key into an address.
    <form
      class="stack"
      method="post"
      onSubmit={(event) => {
        event.preventDefault();
        void send(event.currentTarget);
      }}
    >
      <TextInput
        label="API key"
        name="key"
        type="password"
        mono
        required
        autocomplete="off"
        spellcheck={false}
        placeholder="acf_…:sk_…"
        hint="The two parts of a key, joined by a colon."
      />
      <Remember />
      {failure !== null && <FailureNote failure={failure} />}
      <div class={onCancel && 'dialog-foot'}>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
        <Button kind="primary" type="submit" busy={busy}>
          {submit}
        </Button>
      </div>
    </form>
  );
}

/** If a browser cannot be signed in, its tab can keep the key. */
function Remember() {
  const [keeps] = useState(canKeep);
  return keeps ? (
    <Check name="remember" label="Stay signed in on this browser, in all its tabs" defaultChecked />
  ) : (
    <Check name="remember" label="Remember the key until this tab is closed" />
  );
}

type Role = Schemas['CreatedKey']['role'];
const WISHES: readonly (readonly [Role, string])[] = [
  ['buyer', 'call services'],
  ['provider', 'list services, and call them'],
];
const OPERATES: readonly [Role, string] = ['admin', 'run this marketplace, as its operator'];

/** Somebody has become the operator since this page was loaded. */
const isOperated = signal(false);

/** Opens an account, shows its key once, and signs in with it beside those who are signed in. @param onDone called after that */
export function NewAccount({ onDone, onCancel }: { readonly onDone?: () => void; readonly onCancel?: () => void }) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const { path } = useAddress();
  // A visitor who followed 'Sell your API' wants to list a service.
  const provides = path.startsWith('/console/services');
  const [role, setRole] = useState<Role>(provides ? 'provider' : 'buyer');
  const [made, setMade] = useState<{ readonly key: Schemas['CreatedKey']; readonly remember: boolean } | null>(null);
  const lacksOperator = useFact<true>('lacks_admin') !== null && !isOperated.value;
  const wishes = lacksOperator ? [OPERATES, ...WISHES] : WISHES;
  const send = async (form: HTMLFormElement): Promise<void> => {
    const values = new FormData(form);
    const remember = values.get('remember') !== null;
    setBusy(true);
    setFailure(null);
    try {
      const token = String(values.get('token') ?? '').trim();
      setMade({ key: await createAccount(String(values.get('label')).trim(), role, token), remember });
      if (role === 'admin') isOperated.value = true;
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <form
        class="stack"
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void send(event.currentTarget);
        }}
      >
        <TextInput
          label="Name"
          name="label"
          required
          maxLength={200}
          autocomplete="off"
          hint="For example the name of your project. Two accounts may have the same."
        />
        <Select
          label="I want to"
          value={role}
          onChange={(event) => setRole(wishes.find(([name]) => name === event.currentTarget.value)?.[0] ?? 'buyer')}
          options={wishes}
          {...(lacksOperator && role !== 'admin'
            ? { hint: 'This marketplace has no operator yet. If you run it, choose that.' }
            : {})}
        />
        {role === 'admin' && (
          <>
            <Note>
              This marketplace has no operator yet. Its first one signs up here, and makes keys for others later. If
              ADMIN_BOOTSTRAP_TOKEN is set, its value is needed.
            </Note>
            <TextInput
              label="Bootstrap token, if one is set"
              name="token"
              type="password"
              mono
              autocomplete="off"
              spellcheck={false}
            />
          </>
        )}
        <Remember />
        {failure !== null && <FailureNote failure={failure} />}
        <div class={onCancel && 'dialog-foot'}>
          {onCancel && <Button onClick={onCancel}>Cancel</Button>}
          <Button {...(onCancel ? { kind: 'primary' as const } : {})} type="submit" busy={busy}>
            Open an account
          </Button>
        </div>
      </form>
      {made !== null && (
        <KeyShownOnce
          made={made.key}
          onClose={async () => {
            await signIn(`${made.key.key_id}:${made.key.secret}`, made.remember);
            onDone?.();
          }}
        />
      )}
    </>
  );
}
