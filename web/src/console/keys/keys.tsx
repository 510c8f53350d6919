import './keys.css';
import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, Empty, FailureNote, Note, SkeletonRows, say } from '../../design/index.ts';
import { Card, Stat, Stats } from '../../design/more.ts';
import { ago, count, moment, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { PageHead } from '../shared/page-head.tsx';
import { KeyDialogs, type Open } from './dialogs.tsx';
import { KeyList } from './key-list.tsx';
import { keyTree } from './tree.ts';
import { useUsage } from './use-usage.ts';

/** The API's maximum page size: the newest keys, and with each all keys below it, because those are newer. */
const MAX_KEYS = 1_000;

/** `/console/keys`. A suspended account may not read or make keys; the page says above that it is suspended. */
export default function Keys() {
  if (session.value?.me.account_status !== 'suspended') return <KeysOfAccount />;
  return (
    <>
      <PageHead title="Keys" />
      <Empty title="Keys are refused while the account is suspended">
        They stay, and are listed here again once the operator resumes the account.
      </Empty>
    </>
  );
}

/** The keys of the account as a tree, for all roles. */
function KeysOfAccount() {
  const { language } = useI18n();
  const [version, setVersion] = useState(0);
  const [open, setOpen] = useState<Open | null>(null);
  const me = session.value?.me;
  const own = useResource(`own ${version}`, (signal) => dataOf(api.value.GET('/api/v1/keys/me', { signal })));
  const list = useResource(`keys ${version}`, (signal) =>
    dataOf(api.value.GET('/api/v1/keys', { params: { query: { limit: MAX_KEYS } }, signal })),
  );
  const usage = useUsage(version);
  const isChild = me?.parent_key_id !== undefined;
  // The budgets above this key are not in its list.
  const left = useResource<Partial<Schemas['Balance']>>(`left ${version}`, async (signal) => {
    const balance = isChild ? await dataOf(api.value.GET('/api/v1/balance/me', { signal })) : null;
    return balance?.limit_key === undefined ? {} : balance;
  });
  if (me === undefined) return null;
  const failure = list.failure ?? usage.failure;
  // A child key sees only the keys below it. The key itself is shown above them.
  const listed = [...(list.data?.keys ?? []), ...(isChild ? [own.data ?? me] : [])];
  // The list leaves out test calls of own services, so this key's time is that of the figure above it.
  const keys = listed.map((key) =>
    key.key_id === own.data?.key_id ? { ...key, last_used_at: own.data.last_used_at } : key,
  );
  const leftAbove = left.data?.limit_key === me.key_id ? null : (left.data?.balance ?? null);
  const reload = (): void => setVersion((before) => before + 1);
  // A row grows when the usage of its key arrives, and moves the rows below it; so does what the operator issued. All are requested at the same time.
  const isShown =
    [list, usage, own, left].every(({ data, failure }) => data !== null || failure !== null) && list.data !== null;
  return (
    <>
      <PageHead
        title="Keys"
        lead="Each program should have a key of its own: then its calls can be told apart, its spending can be bounded, and it can be stopped alone."
        actions={
          <>
            {!isChild && <Button onClick={() => setOpen({ kind: 'create' })}>New key without a budget</Button>}
            <Button kind="primary" onClick={() => setOpen({ kind: 'agent' })}>
              New key with a budget
            </Button>
          </>
        }
      />
      <OwnStats own={own.data} rateLimit={me.rate_limit} />
      <Card
        title="All keys"
        flush
        actions={
          <Button small busy={list.loading} onClick={reload}>
            Refresh
          </Button>
        }
      >
        {failure !== null && (
          <div class="card-note">
            <FailureNote failure={failure} retry={reload} />
          </div>
        )}
        {!isShown && list.failure === null && <SkeletonRows />}
        {isShown && own.data !== null && own.data.operator_keys.length > 0 && (
          <div class="card-note">
            <Note tone="info">
              The operator of this gateway issued {own.data.operator_keys.length === 1 ? 'a key' : 'keys'} to this
              account:{' '}
              {own.data.operator_keys
                .map(
                  ({ key_id, label, created_at }) =>
                    `${label === undefined ? '' : `${label} `}${key_id} (${moment(created_at, language)})`,
                )
                .join(', ')}
              . Anyone who has such a key can do what this account may do. Revoke it if you do not want it.
            </Note>
          </div>
        )}
        {isShown && (
          <div aria-busy={list.loading}>
            <KeyList
              nodes={keyTree(keys, leftAbove)}
              label="Keys"
              usageOf={usage.data ?? (() => null)}
              onAct={(kind, node) => setOpen({ kind, node })}
            />
          </div>
        )}
        {isShown && keys.length === 0 && <Empty title="No keys">An account without keys cannot be used.</Empty>}
        {typeof list.data?.next_cursor === 'string' && (
          <p class="card-foot soft">
            These are the newest {count(MAX_KEYS, language)} keys. <code>GET /api/v1/keys</code> lists the others.
          </p>
        )}
        {isShown && (
          <p class="card-foot soft">
            A key spends from its own budget and from every budget above it. Spending counts a second after a call has
            ended. What was given back is no longer spent in a budget; what 30 days cost is as charged. Calls that a
            budget refused have no record of their own.
          </p>
        )}
      </Card>
      <KeyDialogs
        open={open}
        keys={keys}
        me={me}
        onOpen={setOpen}
        onChanged={(done) => {
          reload();
          say(done);
        }}
      />
    </>
  );
}

function OwnStats({ own, rateLimit }: { readonly own: Schemas['OwnKey'] | null; readonly rateLimit: number }) {
  const { language } = useI18n();
  const lastUsed = own?.last_used_at ?? null;
  return (
    <Stats>
      <Stat
        label="Last call of this key"
        value={own === null ? '…' : lastUsed === null ? 'None yet' : ago(lastUsed, language, Date.now())}
        hint="refused calls are left out"
      />
      <Stat
        label="Charged to this key"
        value={own === null ? '…' : money(own.total_spent, language)}
        hint="since it was made"
      />
      <Stat
        label="This key may send"
        value={`${count(own?.rate_limit ?? rateLimit, language)} a minute`}
        hint="requests of programs; pages are counted apart"
      />
    </Stats>
  );
}
