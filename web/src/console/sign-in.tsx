import { useState } from 'preact/hooks';
import type { Schemas } from '../api/client.ts';
import { Button, Card, Check, Code, Dialog, FailureNote, Note, Select, TextInput } from '../design/index.ts';
import { openAccount, signIn } from '../session.ts';

/** Where nobody is signed in: a key, or a new account. */
export function SignIn() {
  return (
    <div class="page sign-in">
      <div class="stack">
        <h1>Console</h1>
        <p class="soft">
          Sign in with an API key. A buyer key shows what you spend, a provider key what you sell, an admin key how the
          marketplace runs.
        </p>
      </div>
      <WithKey />
      <NewAccount />
    </div>
  );
}

function WithKey() {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const values = new FormData(form);
    setBusy(true);
    setFailure(null);
    try {
      await signIn(String(values.get('key')), values.get('remember') !== null);
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Card title="Sign in">
      {/* `post`: should the script fail, the browser must not put the key into an address. */}
      <form
        class="stack"
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
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
        <Check name="remember" label="Remember it until this tab is closed" />
        {failure !== null && <FailureNote failure={failure} />}
        <div>
          <Button kind="primary" type="submit" busy={busy}>
            Sign in
          </Button>
        </div>
      </form>
    </Card>
  );
}

function NewAccount() {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const [role, setRole] = useState<'buyer' | 'provider'>('buyer');
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const values = new FormData(form);
    setBusy(true);
    setFailure(null);
    try {
      await openAccount(String(values.get('label')).trim(), role, values.get('remember') !== null);
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Card title="Open an account">
      <form
        class="stack"
        method="post"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <TextInput
          label="Name"
          name="label"
          required
          maxLength={200}
          autocomplete="off"
          hint="A label for yourself. It is no identity."
        />
        <Select
          label="I want to"
          value={role}
          onChange={(event) => setRole(event.currentTarget.value === 'provider' ? 'provider' : 'buyer')}
          options={[
            ['buyer', 'call services'],
            ['provider', 'list services'],
          ]}
        />
        <Check name="remember" label="Remember the key until this tab is closed" />
        {failure !== null && <FailureNote failure={failure} />}
        <div>
          <Button type="submit" busy={busy}>
            Open an account
          </Button>
        </div>
      </form>
    </Card>
  );
}

/** A secret is shown once: here, until its owner says that it is kept. */
export function SecretShownOnce({
  made,
  onClose,
}: {
  readonly made: Pick<Schemas['CreatedKey'], 'key_id' | 'secret'>;
  readonly onClose: () => void;
}) {
  return (
    <Dialog
      title="Keep this key"
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          I have kept it
        </Button>
      }
    >
      <p>This is the only time that the secret is shown. Whoever has it can spend the money of this account.</p>
      <Code wrap label="API key" text={`${made.key_id}:${made.secret}`} />
      <Note tone="warn">Send it as Authorization: Bearer, never in an address.</Note>
    </Dialog>
  );
}
