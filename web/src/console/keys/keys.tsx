import './keys.css';
import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Badge, Button, Empty, Note, Stat, Stats, say } from '../../design/index.ts';
import { ago, count, moment, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { KeyShownOnce } from '../shared/secret-shown-once.tsx';
import { CreateDialog } from './create-dialog.tsx';
import { KeyStatus } from './key-status.tsx';
import { LimitDialog } from './limit-dialog.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { RotateDialog } from './rotate-dialog.tsx';

type Key = Schemas['Key'];
/** What is shown once, and what is said after that. */
type Secret = { readonly made: Pick<Schemas['CreatedKey'], 'key_id' | 'secret'>; readonly done: string };
/** What is being done, and to which key. */
type Act = { readonly kind: 'rotate' | 'revoke' | 'limit'; readonly key: Key };

const ROLES = ['buyer', 'provider', 'admin'] as const;
const PAGE_SIZE = 50;

/** `/console/keys`: the keys of the account, for all roles. */
export default function Keys() {
  const { language } = useI18n();
  const [version, setVersion] = useState(0);
  const [creating, setCreating] = useState(false);
  const [act, setAct] = useState<Act | null>(null);
  const [secret, setSecret] = useState<Secret | null>(null);
  const own = useResource(`own ${version}`, (signal) => dataOf(api.value.GET('/api/v1/keys/me', { signal })));
  const me = session.value?.me;
  if (me === undefined) return null;
  const changed = (done: string): void => {
    setVersion((before) => before + 1);
    say(done);
  };
  const isAbove = (key: Key): boolean => ROLES.indexOf(key.role) > ROLES.indexOf(me.role);
  const now = Date.now();
  return (
    <>
      <PageHead
        title="Keys"
        lead="Each program should have a key of its own: then its calls can be told apart, and it can be stopped alone."
        actions={
          <Button kind="primary" onClick={() => setCreating(true)}>
            Create a key
          </Button>
        }
      />
      <Stats>
        <Stat
          label="This key was last used"
          value={
            own.data === null
              ? '…'
              : own.data.last_used_at === null
                ? 'Never'
                : ago(own.data.last_used_at, language, now)
          }
          hint="for a call of a service"
        />
        <Stat label="This key has spent" value={own.data === null ? '…' : money(own.data.total_spent, language)} />
        <Stat
          label="This key may send"
          value={`${count(own.data?.rate_limit ?? me.rate_limit, language)} a minute`}
          hint="requests, those of this console included"
        />
      </Stats>
      {own.data !== null && own.data.operator_keys.length > 0 && (
        <Note tone="info">
          The operator of this gateway issued {own.data.operator_keys.length === 1 ? 'a key' : 'keys'} to this account:{' '}
          {own.data.operator_keys
            .map(({ key_id, created_at }) => `${key_id} (${moment(created_at, language)})`)
            .join(', ')}
          . Whoever has such a key can do what this account may do. Revoke it if you do not want it.
        </Note>
      )}
      <ListPage<Key>
        caption="Keys"
        version={version}
        ask={async ({ cursor }, signal) => {
          const query = { limit: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
          const page = await dataOf(api.value.GET('/api/v1/keys', { params: { query }, signal }));
          return { rows: page.keys, next: page.next_cursor };
        }}
        keyOf={({ key_id }) => key_id}
        empty={<Empty title="No keys">An account without keys cannot be used.</Empty>}
        columns={[
          {
            title: 'Key',
            cell: ({ key_id, by_operator }) => (
              <span class="key-id">
                <code class="break">{key_id}</code>
                {key_id === me.key_id && <Badge tone="accent">This key</Badge>}
                {by_operator && <Badge>By the operator</Badge>}
              </span>
            ),
          },
          { title: 'Role', cell: ({ role }) => role },
          {
            title: 'Status',
            cell: (key) => <KeyStatus of={key} language={language} now={now} />,
          },
          {
            title: 'Created',
            minor: true,
            cell: ({ created_at }) => (
              <span title={moment(created_at, language)}>{ago(created_at, language, now)}</span>
            ),
          },
          {
            title: 'Limit',
            right: true,
            minor: true,
            cell: ({ rate_limit }) => `${count(rate_limit, language)} / min`,
          },
          {
            title: 'Actions',
            cell: (key) =>
              key.status === 'revoked' ? (
                <span class="faint">–</span>
              ) : isAbove(key) ? (
                <span class="faint">Needs a {key.role} key</span>
              ) : (
                <span class="key-acts">
                  <Button small aria-label={`Rotate ${key.key_id}`} onClick={() => setAct({ kind: 'rotate', key })}>
                    Rotate
                  </Button>
                  {me.role === 'admin' && (
                    <Button small aria-label={`Limit of ${key.key_id}`} onClick={() => setAct({ kind: 'limit', key })}>
                      Limit
                    </Button>
                  )}
                  <Button
                    small
                    kind="danger"
                    aria-label={`Revoke ${key.key_id}`}
                    onClick={() => setAct({ kind: 'revoke', key })}
                  >
                    Revoke
                  </Button>
                </span>
              ),
          },
        ]}
      />
      {creating && (
        <CreateDialog
          roles={ROLES.slice(0, ROLES.indexOf(me.role) + 1)}
          owner={me.owner_id}
          onClose={() => setCreating(false)}
          onMade={(made) => {
            setCreating(false);
            setSecret({ made, done: 'The key is made.' });
          }}
        />
      )}
      {act?.kind === 'rotate' && (
        <RotateDialog
          of={act.key}
          isOwn={act.key.key_id === me.key_id}
          onClose={() => setAct(null)}
          onMade={(made) => {
            setAct(null);
            setSecret({ made, done: 'The key has a new secret.' });
          }}
        />
      )}
      {act?.kind === 'limit' && (
        <LimitDialog of={act.key} onClose={() => setAct(null)} onDone={() => changed('The limit is changed.')} />
      )}
      {act?.kind === 'revoke' && (
        <RevokeDialog
          of={act.key}
          isOwn={act.key.key_id === me.key_id}
          onClose={() => setAct(null)}
          onDone={() => changed('The key is revoked.')}
        />
      )}
      {secret !== null && (
        <KeyShownOnce
          made={secret.made}
          onClose={() => {
            setSecret(null);
            changed(secret.done);
          }}
        />
      )}
    </>
  );
}
