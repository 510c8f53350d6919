import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../../api/client.ts';
import { Button, Empty, say } from '../../../design/index.ts';
import { useResource } from '../../../resource.ts';
import { api, session } from '../../../session.ts';
import { ChangeDialog } from '../../keys/change-dialog.tsx';
import { RevokeDialog } from '../../keys/revoke-dialog.tsx';
import { activeBelow } from '../../keys/tree.ts';
import { State, When } from '../../shared/cells.tsx';
import { Short, type TabProps } from './short.tsx';

type Key = Schemas['Key'];

export function KeysOf({ account, onChanged }: TabProps) {
  const id = account.account_id;
  const [open, setOpen] = useState<{ readonly act: 'change' | 'revoke'; readonly key: Key } | null>(null);
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
          {
            title: 'Key',
            cell: (key) => (
              <>
                {key.label !== undefined && <span class="break">{key.label} </span>}
                <code>{key.key_id}</code>
              </>
            ),
          },
          { title: 'Role', cell: (key) => key.role },
          { title: 'Status', cell: (key) => <State value={key.status} /> },
          { title: 'Requests a minute', right: true, cell: (key) => key.rate_limit },
          { title: 'Created', cell: (key) => <When at={key.created_at} /> },
          {
            title: 'Actions',
            bare: true,
            right: true,
            cell: (key) =>
              key.status === 'active' && (
                <span class="row-acts">
                  <Button small onClick={() => setOpen({ act: 'change', key })} aria-label={`Change ${key.key_id}`}>
                    Change
                  </Button>
                  <Button
                    small
                    kind="danger"
                    onClick={() => setOpen({ act: 'revoke', key })}
                    aria-label={`Revoke ${key.key_id}`}
                  >
                    Revoke
                  </Button>
                </span>
              ),
          },
        ]}
        empty={<Empty title="No keys">Nobody can use this account.</Empty>}
        more={<a href={`/console/calls?account_id=${id}`}>Calls of these keys</a>}
      />
      {open?.act === 'change' && (
        <ChangeDialog
          of={open.key}
          may={open.key.parent_key_id === undefined ? 'rate' : 'limits'}
          onClose={close}
          onDone={() => {
            say('The key is changed.');
            list.reload();
          }}
        />
      )}
      {open?.act === 'revoke' && (
        <RevokeDialog
          of={open.key}
          below={activeBelow(list.data ?? [], open.key.key_id)}
          isOwn={open.key.key_id === session.value?.me.key_id}
          onClose={close}
          onDone={() => {
            say('The key is revoked.');
            onChanged();
          }}
        />
      )}
    </>
  );
}
