import { useState } from 'preact/hooks';
import { useAddress } from '../../../address.tsx';
import { ApiFailure, dataOf, type Schemas } from '../../../api/client.ts';
import { Empty, FailureNote, LinkButton, Note, SkeletonPage } from '../../../design/index.ts';
import { CopyButton, Stat, Stats, Tabs } from '../../../design/more.ts';
import { count, date, money } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { useResource } from '../../../resource.ts';
import { api } from '../../../session.ts';
import { State } from '../../shared/cells.tsx';
import { PageHead } from '../../shared/page-head.tsx';
import { Acts } from './acts.tsx';
import { StatementOf } from './statement.tsx';
import { AuditOf, CallsOf, KeysOf, PaymentsOf, ServicesOf } from './tabs.tsx';

const TABS = [
  ['keys', 'Keys'],
  ['statement', 'Statement'],
  ['calls', 'Calls'],
  ['payments', 'Payments'],
  ['services', 'Services'],
  ['audit', 'Audit'],
] as const;

/** One account: its money, and everything that belongs to it. */
export function AccountPage({ id }: { readonly id: string }) {
  const address = useAddress();
  const { language } = useI18n();
  const [version, setVersion] = useState(0);
  const account = useResource(`account ${id} ${version}`, (signal) =>
    dataOf(api.value.GET('/api/v1/admin/accounts/{id}', { params: { path: { id } }, signal })),
  );
  const changed = (): void => setVersion((before) => before + 1);
  const chosen = TABS.find(([tab]) => tab === address.query.get('tab'))?.[0] ?? 'keys';
  const { data, failure } = account;
  if (data === null) {
    const isUnknown = failure instanceof ApiFailure && failure.status === 404;
    return (
      <>
        <PageHead title="Account" />
        {isUnknown ? (
          <Empty
            title="There is no such account"
            action={<LinkButton href="/console/accounts">All accounts</LinkButton>}
          >
            Look for its label, its id or one of its keys.
          </Empty>
        ) : failure === null ? (
          <SkeletonPage shape="figures" />
        ) : (
          <FailureNote failure={failure} retry={account.reload} />
        )}
      </>
    );
  }
  const Tab = {
    keys: KeysOf,
    statement: StatementOf,
    calls: CallsOf,
    payments: PaymentsOf,
    services: ServicesOf,
    audit: AuditOf,
  }[chosen];
  return (
    <>
      <PageHead
        title={data.owner_id}
        lead={
          <span class="account-title">
            <State value={data.status} />
            <code class="break">{id}</code>
            <CopyButton text={id} label="Copy id" />
          </span>
        }
        actions={<Acts account={data} onChanged={changed} />}
      />
      {failure !== null && <FailureNote failure={failure} retry={account.reload} />}
      {!data.is_live && data.status !== 'closed' && (
        <Note tone="warn">
          The live balance cannot be read: Redis is away, or its data are damaged. The balance is that of Postgres.
        </Note>
      )}
      {data.suspension_reason !== null && <Note tone="warn">Suspended: {data.suspension_reason}</Note>}
      <Profile account={data} />
      <Stats>
        <Stat
          label="Balance"
          value={money(data.balance, language)}
          hint={
            data.status === 'suspended'
              ? 'cannot be spent: suspended'
              : data.is_live
                ? 'can be spent now'
                : 'in Postgres'
          }
        />
        <Stat label="Held" value={data.held === null ? '–' : money(data.held, language)} hint="by open calls" />
        <Stat label="Payable" value={money(data.payable, language)} hint="not paid out yet" />
        <Stat label="Active keys" value={count(data.active_keys, language)} />
        <Stat
          label={data.closed_at === null ? 'Opened' : 'Closed'}
          value={date(data.closed_at ?? data.created_at, language, Date.now())}
        />
      </Stats>
      <Tabs
        label="What belongs to the account"
        tabs={TABS}
        chosen={chosen}
        // Filters and cursor of a list belong to its tab.
        onChoose={(tab) => address.go(tab === 'keys' ? address.path : `${address.path}?tab=${tab}`, true)}
      >
        <Tab key={`${chosen} ${version}`} account={data} onChanged={changed} />
      </Tabs>
    </>
  );
}

/** What buyers see of a provider, in its own words. */
function Profile({ account }: { readonly account: Schemas['AccountDetails'] }) {
  const said = [account.display_name, account.contact, account.url].filter((text) => text !== null);
  if (said.length === 0) return null;
  return (
    <p class="small soft break">
      Its listings say:{' '}
      {said.map((text, at) => (
        <span key={text}>
          {at > 0 && ' · '}
          <bdi>{text}</bdi>
        </span>
      ))}
    </p>
  );
}
