import { dataOf, type Schemas } from '../../api/client.ts';
import { Note } from '../../design/index.ts';
import { ago, count } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { shortId } from '../shared/ids.tsx';

/** The newest keys that are looked at, and how many of them the note names. */
const LOOKED_AT = 200;
const NAMED = 3;

type Key = Schemas['Keys']['keys'][number];

/** The keys whose budgets `BudgetNote` looks at. */
export const useBudgets = () =>
  useResource('budgets', async (signal): Promise<Pick<Schemas['Keys'], 'keys'>> => {
    // A suspended account may not list its keys, and the page says so already.
    if (session.value?.me.account_status === 'suspended') return { keys: [] };
    return dataOf(api.value.GET('/api/v1/keys', { params: { query: { limit: LOOKED_AT } }, signal }));
  });

/** Keys whose budgets have refused calls in the present period. No list of calls shows a refused call. */
export function BudgetNote({ keys }: { readonly keys: readonly Key[] }) {
  const { language } = useI18n();
  const now = Date.now();
  const spent = keys.filter(
    ({ status, budget, expires_at: expires }) =>
      status === 'active' &&
      budget !== undefined &&
      budget.refused > 0 &&
      (expires === undefined || Date.parse(expires) > now),
  );
  if (spent.length === 0) return null;
  return (
    <Note tone={spent.some(({ budget }) => budget?.remaining === 0) ? 'warn' : 'info'}>
      {spent.slice(0, NAMED).map(({ key_id: id, label, budget }) => (
        <span key={id}>
          The budget of <strong title={id}>{label ?? shortId(id)}</strong> refused{' '}
          {count(budget?.refused ?? 0, language)} {budget?.refused === 1 ? 'call' : 'calls'} in this period
          {budget?.resets_at != null && `, which starts again ${ago(budget.resets_at, language, now)}`}.
        </span>
      ))}
      <span>
        {spent.length > NAMED && `So did those of ${count(spent.length - NAMED, language)} more. `}
        <a href="/console/keys">Change a budget</a>
      </span>
    </Note>
  );
}
