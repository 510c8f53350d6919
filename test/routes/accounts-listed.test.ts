import { beforeAll, describe, expect, it } from 'vitest';
import { type AccountsRoutesDeps, accountsRoutes } from '../../src/routes/admin/accounts.ts';
import { accepts, addAccount, findRoute, json, send } from '../support/accounts.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

type Listed = { accounts: { account_id: string; balance: number; last_used_at: string | null }[]; next_cursor: string };
type Query = Readonly<Record<string, string | number>>;

const BALANCES = [5, 0.25, 0, 5, -1];
const LAST_USED = ['2026-05-02T10:00:00.000001Z', '2026-05-03T00:00:00Z', null, null, '2026-05-02T10:00:00Z'];

useDatabase();
/** In the order in which they were opened. Some have equal balances, and some were never used. */
const ids: string[] = [];

beforeAll(async () => {
  for (const [i, balance] of BALANCES.entries()) {
    const { accountId, keyId } = await addAccount(sql, 'buyer');
    ids.push(accountId);
    // Ids of one millisecond have no order.
    const openedAt = Date.now();
    await until(() => Date.now() > openedAt);
    // No row means 0.
    if (balance !== 0) await sql`INSERT INTO balances VALUES (${accountId}, 'wallet', ${balance * 1e6})`;
    const used = LAST_USED[i];
    if (!used) continue;
    for (const at of [used, '2026-01-01T00:00:00Z']) {
      await sql`
        INSERT INTO key_hours VALUES (${keyId}, date_trunc('hour', ${at}::text::timestamptz), ${accountId}, ${accountId},
                                      1, 1, 0, 1, 0, 0, 0, 0, 0, ${at}::text::timestamptz,
                                      ${at}::text::timestamptz)`;
    }
  }
});

const routes = () => accountsRoutes({ ...({} as AccountsRoutesDeps), sql });

async function list(query: Query): Promise<Listed> {
  const by = await addAccount(sql, 'admin');
  const answer = json(await send(routes(), 'GET /admin/accounts', { by, query })) as Listed;
  return { ...answer, accounts: answer.accounts.filter(({ account_id }) => ids.includes(account_id)) };
}
const numbersOf = ({ accounts }: Listed): number[] => accounts.map(({ account_id }) => ids.indexOf(account_id));
const found = async (query: Query): Promise<number[]> => numbersOf(await list(query));

describe('the list of accounts', () => {
  it.each<[Query, number[]]>([
    [{}, [4, 3, 2, 1, 0]],
    [{ sort: 'newest' }, [4, 3, 2, 1, 0]],
    [{ sort: 'balance' }, [3, 0, 1, 2, 4]],
    [{ sort: 'last_used' }, [1, 0, 4, 3, 2]],
    [{ min_balance: 0.25 }, [3, 1, 0]],
    [{ max_balance: 0 }, [4, 2]],
    [{ min_balance: -1, max_balance: 0.25, sort: 'balance' }, [1, 2, 4]],
    [{ used_since: '2026-05-02T10:00:00Z' }, [4, 1, 0]],
    [{ used_since: '2026-05-03' }, [1]],
    [{ unused_since: '2026-05-03' }, [4, 3, 2, 0]],
    [{ unused_since: '2026-05-02T10:00:00Z', min_balance: 1 }, [3]],
    [{ used_since: '2026-05-02', unused_since: '2026-05-03', sort: 'last_used' }, [0, 4]],
  ])('with %j has the right accounts in the right order', async (query, expected) => {
    expect(await found(query)).toEqual(expected);
  });

  it('shows when each account was last used', async () => {
    const { accounts } = await list({ sort: 'last_used' });
    expect(accounts.map(({ last_used_at }) => last_used_at)).toEqual([
      '2026-05-03T00:00:00.000Z',
      '2026-05-02T10:00:00.000Z',
      '2026-05-02T10:00:00.000Z',
      null,
      null,
    ]);
  });

  it.each(['newest', 'balance', 'last_used'])(
    'sorted by %s has each account once when it is read page by page',
    async (sort) => {
      const whole = await found({ sort });
      const paged: number[] = [];
      let cursor: string | null = null;
      do {
        const page: Listed = await list({ sort, limit: 1, ...(cursor === null ? {} : { cursor }) });
        paged.push(...numbersOf(page));
        cursor = page.next_cursor;
        if (cursor !== null) expect(accepts(findRoute(routes(), 'GET /admin/accounts').query, { cursor })).toBe(true);
      } while (cursor !== null);
      expect(paged).toEqual(whole);
    },
  );

  it('refuses an invalid balance, an invalid time, and a cursor of another order', async () => {
    const refused: [Query, string][] = [
      [{ min_balance: 0.0000001 }, 'min_balance'],
      [{ max_balance: -0.0000001 }, 'max_balance'],
      [{ used_since: 'yesterday' }, 'used_since'],
      [{ unused_since: '2026-13-01' }, 'unused_since'],
      [{ cursor: `5000000.${ids[0]}` }, 'cursor'],
      [{ cursor: ids[0] as string, sort: 'balance' }, 'cursor'],
      [{ cursor: `9999999999999999.${ids[0]}`, sort: 'balance' }, 'cursor'],
      [{ cursor: '1.00000000-0000-0000-0000-00000000000', sort: 'last_used' }, 'cursor'],
    ];
    for (const [query, name] of refused) {
      await expect(list(query)).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining(name),
      });
    }
  });
});
