import { cursorText, readCursor } from '../accounts/cursor.ts';
import { selectAccount } from '../accounts/lists/accounts-sql.ts';
import { type Movement, type StatementLedger, type StatementPage, selectStatement } from '../accounts/statement-sql.ts';
import { parseTimeRange, type TimeRange } from '../accounts/time-range.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest, ApiResponse, Route } from '../http/route.ts';
import { keyOf, ROLES } from '../keys/caller.ts';
import type { Wallet, WalletReader } from '../ledger/wallets/wallets.ts';
import { COUNT, CURRENCY, EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { isUuid } from '../platform/ids.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql } from '../platform/postgres.ts';
import { CsvList, type CsvListQuery } from './csv-list.ts';

/**
 * The part of a cursor after the time. For an hour: empty. For a movement: its journal row or its service and, for the second of
 * two, a suffix.
 */
const CURSOR_REST = /^((\d{16}|-?[0-9a-f-]{36})(-fee|-refund)?)?$/;

type Query = CsvListQuery & { readonly ledger?: StatementLedger };

const MOVEMENT = record(
  'Movement',
  {
    at: {
      ...TIME,
      description:
        'When. Of a sum over calls: when the last of them began; of earnings that could not be divided, when a payout or refund took of them. RFC 3339, in UTC',
    },
    kind: {
      type: 'string',
      enum: ['pending', 'credit', 'charge', 'refund', 'debit', 'correction', 'earning', 'fee', 'payout'],
      description:
        'pending: what has moved already and is not in the books yet. refund: what was given back of a call; a fee with a usage_id is what the platform gave back of it. correction: an operator made the books agree with what the account could spend',
    },
    amount: usd('Negative: money left the account'),
    balance: usd('What the account had after it; of a sum over calls, unless the sum above it began before its end'),
    from: {
      ...TIME,
      description:
        'Of a sum over the calls of a service within an hour, between two other movements: when the first of them began',
    },
    calls: { ...COUNT, description: 'Of a sum: how many calls were charged or free' },
    service_id: UUID,
    service_name: TEXT,
    usage_id: { ...UUID, description: 'Of a refund, and of the fee that came back with it: the call' },
    reference: TEXT,
    reason: TEXT,
  },
  { optional: ['from', 'calls', 'service_id', 'service_name', 'usage_id', 'reference', 'reason'] },
);
const STATEMENT = record('Statement', {
  owner_id: TEXT,
  ledger: { type: 'string', enum: ['wallet', 'earnings'] },
  balance: usd('What the account had after the newest movement of this page'),
  currency: CURRENCY,
  movements: list(MOVEMENT, 'Newest first'),
  next_cursor: orNull(TEXT),
});
const CHARGE = {
  at: '2026-11-22T07:41:10.250Z',
  kind: 'charge',
  amount: -0.002,
  balance: 9.998,
  from: '2026-11-22T07:02:31.004Z',
  calls: 1,
  service_id: EXAMPLE.serviceId,
  service_name: 'Translate',
};
const STATEMENT_EXAMPLE = {
  owner_id: 'acme-bot',
  ledger: 'wallet',
  balance: 9.998,
  currency: 'USD',
  movements: [CHARGE, { at: EXAMPLE.time, kind: 'credit', amount: 10, balance: 10, reference: 'invoice 4711' }],
  next_cursor: null,
};

const LIST = new CsvList({
  fileName: 'statement.csv',
  entries: 'movements',
  columns: [
    'at',
    'kind',
    'amount',
    'balance',
    'from',
    'calls',
    'service_id',
    'service_name',
    'reference',
    'reason',
    'usage_id',
  ],
  filters: {
    ledger: {
      type: 'string',
      enum: ['wallet', 'earnings'],
      description:
        'Which money: what calls spend, or what services earn. Without it earnings for provider keys, else wallet',
    },
  },
  cursor: { maxLength: 60, example: '1763794800000000-' },
  pagesEnd: 'a page ends with an hour (UTC), so it may have fewer, or more if they are all of one hour',
  page: json('The statement', STATEMENT, STATEMENT_EXAMPLE),
  exampleRow: CHARGE,
});

/** A movement as it is shown, including the one for money that is not in the books yet. */
type Shown = Omit<Movement, 'position' | 'kind'> & { readonly at: Date; readonly kind: Movement['kind'] | 'pending' };

/**
 * `GET /statement/me`: every movement of the account's money, newest first, with a running balance that ends at what `GET
 * /balance/me` shows as `balance + held`, or `GET /earnings/me` as `payable`. `GET /admin/accounts/{id}/statement` is the same for
 * any account.
 */
export function statementRoutes(deps: { readonly sql: Sql; readonly wallets: WalletReader }): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/statement/me',
      summary: "Every movement of the account's money, newest first, with a running balance; JSON or CSV",
      access: ROLES,
      forSuspended: true,
      query: LIST.query,
      responses: { 200: LIST.response },
      handle: async (request: ApiRequest<undefined, Query>) => {
        const { accountId, ownerId, role } = keyOf(request.caller);
        const { ledger = role === 'provider' ? 'earnings' : 'wallet' } = request.query;
        if (ledger === 'earnings' && role === 'buyer') {
          throw new ApiError('forbidden', 'ledger: a buyer key may not see what the services of its account earn.');
        }
        return answer(
          deps.sql,
          { accountId, ownerId, ledger, readWallet: () => deps.wallets.read(accountId) },
          request,
        );
      },
    },
    {
      method: 'GET',
      path: '/api/v1/admin/accounts/:id/statement',
      summary: "Every movement of an account's money, as the account itself sees it; JSON or CSV",
      access: ['admin'],
      params: { id: { description: 'The account', schema: UUID, example: EXAMPLE.accountId } },
      query: LIST.query,
      responses: { 200: LIST.response },
      errors: ['not_found'],
      handle: async (request: ApiRequest<undefined, Query>) => {
        const id = request.params.id ?? '';
        const account = isUuid(id) ? await selectAccount(deps.sql, id) : null;
        if (account === null) throw new ApiError('not_found', 'There is no such account.');
        const { accountId, ownerId, status } = account;
        // A closed account needs no wallet in Redis, and an operator must be able to see the books even while a wallet cannot be
        // read.
        const readWallet = async () => (status === 'closed' ? null : deps.wallets.read(accountId).catch(() => null));
        return answer(deps.sql, { accountId, ownerId, ledger: request.query.ledger ?? 'wallet', readWallet }, request);
      },
    },
  ];
}

/** Whose statement it is, and of which money. */
type Subject = {
  readonly accountId: string;
  readonly ownerId: string;
  readonly ledger: StatementLedger;
  /** The live wallet; null: the statement ends with the books. */
  readonly readWallet: () => Promise<Wallet | null>;
};

async function answer(sql: Sql, subject: Subject, request: ApiRequest<undefined, Query>): Promise<ApiResponse> {
  const page = await readPage(sql, subject, request.query, LIST.limitOf(request));
  return LIST.isCsvWanted(request) ? LIST.csvPage(page.rows.map(rowOf), page.next) : jsonPage(subject, page);
}

type Page = {
  readonly ledger: StatementLedger;
  readonly balanceMicros: number;
  readonly rows: readonly Shown[];
  readonly next: string | null;
};

async function readPage(
  sql: Sql,
  { accountId, ledger, readWallet }: Subject,
  query: Query,
  limit: number,
): Promise<Page> {
  const range = parseTimeRange(query);
  const before = readCursor(query.cursor, CURSOR_REST);
  const endsNow = before === null && isNewest(range, Date.now());
  // Read before the books, so that calls stored between the two readings are at least not missing here.
  const live = ledger === 'wallet' && endsNow ? await readWallet() : null;
  const found = await selectStatement(sql, { ...range, accountId, ledger, before, limit });
  const rows: Shown[] = found.movements.map((movement) => ({
    ...movement,
    at: new Date(movement.position.micros / 1000),
  }));
  const next = found.next === null ? null : cursorText(found.next);
  if (live === null) return { ledger, balanceMicros: found.balanceMicros, rows, next };
  const balanceMicros = live.balanceMicros + live.heldMicros;
  return { ledger, balanceMicros, rows: [...pending(balanceMicros, found, rows[0]?.at), ...rows], next };
}

/** Whether the range includes the newest movements. */
const isNewest = ({ fromMs, toMs }: TimeRange, nowMs: number): boolean =>
  (fromMs ?? nowMs) <= nowMs && (toMs === null || toMs > nowMs);

/**
 * One row for money that the wallet has moved and the books do not show yet: calls that ended within the last second, for instance.
 */
function pending(balanceMicros: number, found: StatementPage, newest = new Date(0)): Shown[] {
  const amountMicros = balanceMicros - found.balanceMicros;
  if (amountMicros === 0) return [];
  const nothing = {
    from: null,
    calls: null,
    serviceId: null,
    serviceName: null,
    usageId: null,
    reference: null,
    reason: null,
  };
  // The clock of the gateway that took the last call may be ahead of this one's.
  const at = new Date(Math.max(Date.now(), newest.getTime()));
  return [{ at, kind: 'pending', amountMicros, balanceMicros, ...nothing }];
}

const rowOf = (row: Shown) => ({
  at: row.at.toISOString(),
  kind: row.kind,
  amount: microsToUsd(row.amountMicros),
  balance: microsToUsd(row.balanceMicros),
  ...(row.from === null ? {} : { from: row.from.toISOString() }),
  ...(row.calls === null ? {} : { calls: row.calls }),
  ...(row.serviceId === null ? {} : { service_id: row.serviceId, service_name: row.serviceName ?? '' }),
  ...(row.usageId === null ? {} : { usage_id: row.usageId }),
  ...(row.reference === null ? {} : { reference: row.reference }),
  ...(row.reason === null ? {} : { reason: row.reason }),
});

function jsonPage({ ownerId }: Subject, { ledger, balanceMicros, rows, next }: Page): ApiResponse {
  return LIST.jsonPage({
    owner_id: ownerId,
    ledger,
    balance: microsToUsd(balanceMicros),
    currency: 'USD',
    movements: rows.map(rowOf),
    next_cursor: next,
  });
}
