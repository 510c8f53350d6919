import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../../api/client.ts';
import { Button, ConfirmDialog, Dialog, Empty, FailureNote, say, TextInput } from '../../../design/index.ts';
import { useResource } from '../../../resource.ts';
import { api, session } from '../../../session.ts';
import { State, When } from '../parts.tsx';
import { Short, type TabProps } from './short.tsx';

type Key = Schemas['Key'];

export function KeysOf({ account, onChanged }: TabProps) {
  const id = account.account_id;
  const [open, setOpen] = useState<{ readonly act: 'limit' | 'revoke'; readonly key: Key } | null>(null);
  const list = useResource(`keys of ${id}`, async (signal) => {
    const query = { account_id: id, limit: 100 };
    return (await dataOf(api.value.GET('/api/v1/admin/keys', { params: { query }, signal }))).keys;
  });
  const close = (): void => setOpen(null);
  return (
    <>
      <Short
        caption="Keys of the account"
        list={list}
        keyOf={(key) => key.key_id}
        columns={[
          { title: 'Key', cell: (key) => <code>{key.key_id}</code> },
          { title: 'Role', cell: (key) => key.role },
          { title: 'Status', cell: (key) => <State value={key.status} /> },
          { title: 'Requests a minute', right: true, cell: (key) => key.rate_limit },
          { title: 'Made', cell: (key) => <When at={key.created_at} /> },
          {
            title: 'Acts',
            right: true,
            cell: (key) =>
              key.status === 'active' && (
                <span class="row-acts">
                  <Button
                    small
                    onClick={() => setOpen({ act: 'limit', key })}
                    aria-label={`Change limit of ${key.key_id}`}
                  >
                    Change limit
                  </Button>
                  {key.key_id !== session.value?.me.key_id && (
                    <Button
                      small
                      kind="danger"
                      onClick={() => setOpen({ act: 'revoke', key })}
                      aria-label={`Revoke ${key.key_id}`}
                    >
                      Revoke
                    </Button>
                  )}
                </span>
              ),
          },
        ]}
        empty={<Empty title="No keys">Nobody can use this account.</Empty>}
        more={<a href={`/console/calls?account_id=${id}`}>Calls of these keys</a>}
      />
      {open?.act === 'limit' && <LimitDialog of={open.key} onClose={close} onDone={list.reload} />}
      {open?.act === 'revoke' && (
        <ConfirmDialog
          title="Revoke this key?"
          confirm="Revoke key"
          onClose={close}
          act={async () => {
            const path = { key_id: open.key.key_id };
            await dataOf(api.value.DELETE('/api/v1/keys/{key_id}', { params: { path } }));
            say('The key is revoked');
            onChanged();
          }}
        >
          <p>
            <code class="break">{open.key.key_id}</code> gets 401 from its next request on, on every gateway.
          </p>
          <p>It cannot be undone: its owner has to create another key.</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** Limits of the API: 1 to 300. */
const MAX_LIMIT = 300;

function LimitDialog({
  of,
  onClose,
  onDone,
}: {
  readonly of: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const [text, setText] = useState(String(of.rate_limit));
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const limit = /^\d{1,3}$/.test(text.trim()) ? Number(text) : 0;
  const isGood = limit >= 1 && limit <= MAX_LIMIT;
  const send = async (): Promise<void> => {
    if (!isGood) return;
    setBusy(true);
    setFailure(null);
    try {
      const params = { path: { key_id: of.key_id } };
      await dataOf(api.value.PATCH('/api/v1/keys/{key_id}', { params, body: { rate_limit: limit } }));
      say(`The key may send ${limit} requests a minute now`);
      onDone();
      onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Limit of a key"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" busy={busy} onClick={() => void send()}>
            Change limit
          </Button>
        </>
      }
    >
      <code class="break">{of.key_id}</code>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <TextInput
          label="Requests a minute"
          inputMode="numeric"
          autoFocus
          value={text}
          error={isGood ? null : `A whole number from 1 to ${MAX_LIMIT}.`}
          hint="Counts from the next request on."
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </form>
      {failure !== null && <FailureNote failure={failure} />}
    </Dialog>
  );
}
