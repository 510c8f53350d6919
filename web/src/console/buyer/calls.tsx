import './buyer.css';
import { type Address, useAddress } from '../../address.tsx';
import { dataOf } from '../../api/client.ts';
import { Empty, LinkButton, SkeletonCard } from '../../design/index.ts';
import type { Column } from '../../design/more.ts';
import { count, duration, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { AskedFor, ByUse, OutcomeBadge, When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { shortId } from '../shared/ids.tsx';
import { type Filter, ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { WhenKnown } from '../shared/when-known.tsx';
import { BudgetNote, useBudgets } from './budget-note.tsx';
import { CallPage } from './call-page.tsx';
import { RefusedNote } from './refused-note.tsx';
import {
  type Call,
  callsOfKey,
  callsOfTag,
  givenBack,
  hasTags,
  keyNames,
  type Usage,
  usageFile,
  usageOf,
  whose,
} from './usage.ts';

const PAGE_SIZE = 50;

/** `/console/calls`, and `/console/calls/{usage_id}`. */
export default function Calls() {
  const { path } = useAddress();
  const id = path.split('/')[3] ?? '';
  return id === '' ? <CallList /> : <CallPage id={id} />;
}

const keyOf = ({ key_id, key_label }: Call) => (
  <a class={key_label === null ? 'nowrap' : 'name'} href={callsOfKey(key_id)} title={key_id}>
    {key_label ?? shortId(key_id)}
  </a>
);
const tagOf = ({ tag }: Call) =>
  tag !== undefined && (
    <a class="name of-two-lines" href={callsOfTag(tag)} title={tag}>
      {tag}
    </a>
  );

/** The key that called, and for whom. It is one column, because two would leave no room for the request. */
function whoColumns(hasKeys: boolean, isTagged: boolean): Column<Call>[] {
  if (!hasKeys) return isTagged ? [{ title: 'Tag', minor: true, cell: tagOf }] : [];
  if (!isTagged) return [{ title: 'Key', minor: true, cell: keyOf }];
  const cell = (call: Call) => (
    <>
      {keyOf(call)}
      {tagOf(call)}
    </>
  );
  return [{ title: 'Key and tag', minor: true, cell }];
}

/** One of the known filters. A shared address may name an unknown one. */
function choice(
  address: Address,
  name: string,
  label: string,
  all: string,
  known: readonly (readonly [value: string, text: string])[],
): Filter {
  const chosen = address.query.get(name) ?? '';
  const isKnown = chosen === '' || known.some(([value]) => value === chosen);
  return {
    name,
    label,
    options: [['', all], ...known, ...(isKnown ? [] : [[chosen, `The chosen ${label.toLowerCase()}`] as const])],
  };
}

function CallList() {
  const { language } = useI18n();
  const address = useAddress();
  const all = useResource('all', (signal) => usageOf({ limit: 1 }, signal));
  const balance = useResource('balance', (signal) => dataOf(api.value.GET('/api/v1/balance/me', { signal })));
  const budgets = useBudgets();
  // The list is asked for meanwhile, and shown below the notes: it must not move when they come.
  const isKnown = [all, balance, budgets].every(({ data, failure }) => data !== null || failure !== null);
  const names = keyNames(all.data?.by_key ?? []);
  const tag = address.query.get('tag') ?? '';
  const isTagged = hasTags(all.data) || tag !== '';
  const filters: Filter[] = [
    ...RANGE_FILTERS,
    choice(address, 'key_id', 'Key', 'All keys', [...names]),
    choice(
      address,
      'service_id',
      'Service',
      'All services',
      (all.data?.by_service ?? []).map(({ service_id, service_name }) => [service_id, service_name]),
    ),
    {
      name: 'outcome',
      label: 'Outcome',
      options: [
        ['', 'All outcomes'],
        ['completed', 'Charged, free or given back'],
        ['refunded', 'Refunded: not charged'],
      ],
    },
    ...(isTagged ? [{ name: 'tag', label: 'Tag', placeholder: 'customer-17' }] : []),
  ];
  return (
    <>
      <PageHead title="Calls" lead={`Calls of ${whose()}, newest first. A call appears within a second of its end.`} />
      <WhenKnown isKnown={isKnown} waiting={<SkeletonCard lines={9} />}>
        <BudgetNote keys={budgets.data?.keys ?? []} />
        <RefusedNote usage={all.data} balance={balance.data?.balance ?? null} isAlone />
        <ListPage<Call>
          caption="Calls"
          filters={filters}
          ask={async (query, signal) => {
            const usage = await usageOf({ ...query, limit: PAGE_SIZE }, signal);
            // The sums are of all outcomes, and where there are none by tag, of all tags.
            const sums = tag === '' || usage.by_tag !== undefined ? <Sums usage={usage} of={query} /> : undefined;
            return { rows: usage.records, next: usage.next_cursor, since: usage.records_since, sums };
          }}
          keyOf={({ usage_id }) => usage_id}
          empty={
            <Empty
              title="No calls yet"
              action={
                <LinkButton kind="primary" href="/">
                  Find a service
                </LinkButton>
              }
            >
              Your calls appear here, with what each cost and how it ended.
            </Empty>
          }
          file={{ name: 'calls', ask: usageFile }}
          columns={[
            {
              title: 'When',
              cell: ({ usage_id, created_at }) => (
                <a href={`/console/calls/${usage_id}`}>
                  <When at={created_at} />
                </a>
              ),
            },
            { title: 'Service', cell: ({ service_name }) => <span class="name">{service_name}</span> },
            ...whoColumns(names.size > 1, isTagged),
            {
              title: 'Request',
              minor: true,
              cell: ({ method, path }) => (
                <code class="request of-two-lines" title={`${method} ${path}`}>
                  {method} {path}
                </code>
              ),
            },
            { title: 'Status', minor: true, cell: ({ status }) => <span class="number">{status}</span> },
            {
              title: 'Outcome',
              cell: (call) => (
                <span class="outcome">
                  <OutcomeBadge call={call} />
                  <AskedFor call={call} />
                </span>
              ),
            },
            {
              title: 'Took',
              right: true,
              minor: true,
              cell: ({ latency_ms }) => (latency_ms === 0 ? '–' : duration(latency_ms, language)),
            },
            {
              title: 'Cost',
              wide: true,
              amount: ({ amount }) => amount,
              cell: (call, text) => <ByUse call={call} text={text} />,
            },
          ]}
        />
      </WhenKnown>
    </>
  );
}

function Sums({ usage, of }: { readonly usage: Usage; readonly of: Readonly<Record<string, string>> }) {
  const { language } = useI18n();
  return (
    <>
      {of.outcome !== undefined && 'Of all outcomes: '}
      <strong>{count(usage.total_calls, language)}</strong> {usage.total_calls === 1 ? 'call' : 'calls'} for{' '}
      <strong>{money(usage.total_spent, language)}</strong>
      {givenBack(usage.total_refunded, language)}, {count(usage.free_calls, language)} of them used a free call
      {usage.avg_latency_ms > 0 && `, ${duration(usage.avg_latency_ms, language)} on average`}.
    </>
  );
}
