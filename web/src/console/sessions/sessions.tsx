import { useState } from 'preact/hooks';
import type { Schemas } from '../../api/client.ts';
import { Badge, Button, Empty, FailureNote, Skeleton, say } from '../../design/index.ts';
import { Card, type Column, ConfirmDialog, Table } from '../../design/more.ts';
import { useResource } from '../../resource.ts';
import { endSession, session, sessionsHere, signOut } from '../../session.ts';
import { When } from '../shared/cells.tsx';
import { Id } from '../shared/ids.tsx';
import { PageHead } from '../shared/page-head.tsx';

type Shown = Schemas['Session'];

/** Where the accounts of this browser are signed in, and how to end these sessions. */
export default function Sessions() {
  const now = session.value;
  const [ending, setEnding] = useState<'everywhere' | Shown | null>(null);
  const { data, failure, loading, reload } = useResource(`sessions ${now?.id}`, async () =>
    now?.id == null ? [] : sessionsHere(true),
  );
  if (now === null) return null;
  const columns: readonly Column<Shown>[] = [
    {
      title: 'Account',
      wide: true,
      cell: (row) => (
        <span class="row">
          <strong>{row.owner_id}</strong> <Badge>{row.role}</Badge>
          {row.id === now.id && <Badge tone="accent">Shown now</Badge>}
        </span>
      ),
    },
    { title: 'Where', cell: (row) => (row.is_here ? 'This browser' : 'Another browser') },
    {
      title: 'Key',
      minor: true,
      cell: (row) => (
        <span class="nowrap">
          {row.label === null ? '' : `${row.label} `}
          <Id id={row.key_id} />
        </span>
      ),
    },
    { title: 'Since', cell: (row) => <When at={row.created_at} /> },
    { title: 'Last used', cell: (row) => (row.id === now.id ? 'Now' : <When at={row.last_used_at} />) },
    { title: 'Ends', minor: true, cell: (row) => <When at={row.expires_at} /> },
    {
      title: 'End it',
      bare: true,
      cell: (row) => (
        <Button
          small
          onClick={() => setEnding(row)}
          aria-label={
            row.is_here
              ? `Sign out ${row.owner_id}, this browser`
              : `End the session of ${row.owner_id}, another browser`
          }
        >
          {row.is_here ? 'Sign out' : 'End'}
        </Button>
      ),
    },
  ];
  return (
    <div class="stack">
      <PageHead
        title="Sessions"
        lead="Where the accounts of this browser are signed in. Revoking or rotating a key ends what was signed in with it, too."
        actions={
          now.id !== null && (
            <Button kind="danger" onClick={() => setEnding('everywhere')}>
              Sign out everywhere
            </Button>
          )
        }
      />
      {now.id === null ? (
        <Empty title="This browser is not signed in">
          The key is in this tab alone: other tabs do not have it, and it goes with the tab.
        </Empty>
      ) : (
        <>
          {failure !== null && <FailureNote failure={failure} retry={reload} />}
          {data === null ? (
            loading && <Skeleton lines={4} />
          ) : (
            <Card flush>
              <Table caption="Sessions" columns={columns} rows={data} keyOf={(row) => row.id} />
            </Card>
          )}
        </>
      )}
      {ending === 'everywhere' && (
        <ConfirmDialog
          title="Sign out everywhere?"
          confirm="Sign out everywhere"
          act={() => signOut(true)}
          onClose={() => setEnding(null)}
        >
          <p>
            All sessions of these accounts end now, this one too, and with them what open pages send. API keys stay
            valid: if somebody else may know one, rotate it.
          </p>
        </ConfirmDialog>
      )}
      {ending !== null && ending !== 'everywhere' && (
        <ConfirmDialog
          title={`End the session of ${ending.owner_id}?`}
          confirm="End session"
          act={async () => {
            await endSession(ending.id);
            say('The session has ended.');
            setEnding(null);
            reload();
          }}
          onClose={() => setEnding(null)}
        >
          <p>
            {ending.is_here ? 'This browser' : 'That browser'} is no longer signed in with the key{' '}
            <code class="break">{ending.key_id}</code>. The key stays valid.
          </p>
        </ConfirmDialog>
      )}
    </div>
  );
}
