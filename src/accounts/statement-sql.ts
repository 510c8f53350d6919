import type { Sql, Tx } from '../platform/postgres.ts';
import { microsOf, type Position, timeOf } from './cursor.ts';
import { divided, hourOf } from './statement-parts.ts';
import type { TimeRange } from './time-range.ts';

/** Which money of an account a statement is about: what it can spend, or what its services have earned. */
export type StatementLedger = 'wallet' | 'earnings';

type MovementKind = 'credit' | 'charge' | 'refund' | 'debit' | 'correction' | 'earning' | 'fee' | 'payout';

/**
 * A movement of money. The cost, or the earnings, of the calls of a service in an hour are one movement, at the time of the last of
 * them; where another movement came between these calls, one before it and one after it (statement-parts.ts). If that cannot be told
 * any more, earnings that were paid out or given back in that hour come directly before the first such payout or refund. Otherwise
 * the statement would show a negative balance that never existed.
 */
export type Movement = {
  readonly position: Position;
  readonly kind: MovementKind;
  /** Negative: money left the account. */
  readonly amountMicros: number;
  /** What the account had after it. */
  readonly balanceMicros: number;
  /** For a sum over calls: when the first of them began, and the service. */
  readonly from: Date | null;
  /** For a sum: how many calls were charged or free. */
  readonly calls: number | null;
  readonly serviceId: string | null;
  readonly serviceName: string | null;
  /** For a refund: its call. */
  readonly usageId: string | null;
  /** For a refund, and for what an operator moved. */
  readonly reference: string | null;
  readonly reason: string | null;
};

export type StatementPage = {
  /** Newest first. */
  readonly movements: readonly Movement[];
  /** The balance after the newest movement of this page, or where that movement would be if the page has none. */
  readonly balanceMicros: number;
  /** Where the next page begins; null: there is none. */
  readonly next: Position | null;
};

type StatementRequest = TimeRange & {
  readonly accountId: string;
  readonly ledger: StatementLedger;
  /** Where the previous page ended: its `next`. Null: start from the newest. */
  readonly before: Position | null;
  /** Maximum movements of a page that spans several hours. A single hour is whole, up to `MAX_OF_HOUR`. */
  readonly limit: number;
};

/**
 * Maximum movements of one hour on a page, so that a page has a bound. Longer hours are divided by time, and until their calls have ended,
 * a sum may pass from one of their pages to another.
 */
const MAX_OF_HOUR = 10_000;
const HOUR_MICROS = 3_600_000_000;

type Fragment = ReturnType<Sql>;

/** One kind of movements of one account. The columns of its table `m` are those of `Row`. */
type Source = {
  /** What follows FROM, with a WHERE. */
  readonly from: Fragment;
  /** The time of a movement, and a text that makes its position unique among movements of the same time. */
  readonly at: Fragment;
  readonly rest: Fragment;
  /** An indexed column that follows the time: it is the time itself, or less than `lagHours` behind it, and never ahead. */
  readonly indexed: Fragment;
  readonly lagHours: 0 | 1;
  /** The amount of one row of the table. */
  readonly amount: Fragment;
  /** GROUP BY, if several rows of the table make one movement; `at` is then an aggregate. */
  readonly group: Fragment | null;
  /** The columns besides position and amount: kind, first_at, calls, service_id, usage_id, reference, reason. */
  readonly columns: Fragment;
  /** ORDER BY, newest first. It begins with `indexed`, so that Postgres need not sort all movements to find the newest. */
  readonly order: Fragment;
};

type Row = Omit<Movement, 'position' | 'balanceMicros'> & { readonly micros: number; readonly rest: string };

/**
 * One page of a statement, newest first.
 *
 * A sum over the calls of an hour moves within that hour: up with each call, down if an older call that ended late lets an earlier
 * payout count. It never leaves the hour. So a page ends where an hour ends, and each sum is on one page, whatever happens meanwhile.
 *
 * Whole hours are read, and a range is cut out of them, because the calls of an hour are divided by all that came between them.
 *
 * The balance is computed backwards: the present balance, minus everything newer than the page. Balance, page and sum come from one
 * snapshot. So each page is right by itself, even if a call that ended late has changed an hour since the previous page was read. A
 * balance kept in the cursor would then be wrong.
 *
 * Tested by test/routes/statement.test.ts.
 */
export async function selectStatement(sql: Sql, request: StatementRequest): Promise<StatementPage> {
  return sql.begin(async (tx) => {
    const sources = sourcesOf(tx, request);
    const hours = { ...request, ...wholeHours(request) };
    let left = (await selectBalance(tx, request)) - (await sumNewer(tx, sources, hours));
    const movements: Movement[] = [];
    for (let before = request.before; ; ) {
      const { rows, next } = await selectPage(tx, sources, { ...hours, before });
      for (const { micros, rest, ...row } of rows) {
        if (isInRange(micros, request)) movements.push({ ...row, position: { micros, rest }, balanceMicros: left });
        // The balance after the range, as long as no movement of the range was found.
        if (micros >= (request.fromMs ?? 0) * 1_000 || movements.length > 0) left -= row.amountMicros;
      }
      // All of this page may be of the hour in which the range ends, and after it.
      if (movements.length > 0 || next === null)
        return { movements, balanceMicros: movements[0]?.balanceMicros ?? left, next };
      before = next;
    }
  }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}

const HOUR_MS = HOUR_MICROS / 1_000;

const wholeHours = ({ fromMs, toMs }: TimeRange): TimeRange => ({
  fromMs: fromMs === null ? null : Math.floor(fromMs / HOUR_MS) * HOUR_MS,
  toMs: toMs === null ? null : Math.ceil(toMs / HOUR_MS) * HOUR_MS,
});

const isInRange = (micros: number, { fromMs, toMs }: TimeRange): boolean =>
  (fromMs === null || micros >= fromMs * 1_000) && (toMs === null || micros < toMs * 1_000);

/** As many whole hours as the limit allows, and at least one. */
async function selectPage(
  tx: Tx,
  sources: readonly Source[],
  request: StatementRequest,
): Promise<{ readonly rows: readonly Row[]; readonly next: Position | null }> {
  const { limit, before } = request;
  // The cursor of an hour that is divided by time.
  const isPartOfHour = before !== null && (before.rest !== '' || before.micros % HOUR_MICROS !== 0);
  const whole = (rows: readonly Row[]) => (isPartOfHour ? rows : divided(tx, request, rows));
  const found = await selectRows(tx, sources, { ...request, limit: limit + 1 });
  const last = found[limit];
  if (last === undefined) return { rows: await whole(found), next: null };
  const hour = hourOf(last);
  const newer = found.filter((row) => hourOf(row) > hour);
  if (newer.length > 0) return { rows: await whole(newer), next: { micros: hour + HOUR_MICROS, rest: '' } };
  const most = Math.max(limit, MAX_OF_HOUR);
  const fromMs = Math.max(hour / 1000, request.fromMs ?? 0);
  const ofHour = await selectRows(tx, sources, { ...request, fromMs, limit: most + 1 });
  if (ofHour.length > most) {
    const rows = ofHour.slice(0, most);
    return { rows, next: rows.at(-1) as Position };
  }
  const next = { micros: hour, rest: '' };
  const older = await selectRows(tx, sources, { ...request, before: next, limit: 1 });
  return { rows: await whole(ofHour), next: older.length === 0 ? null : next };
}

function sourcesOf(tx: Tx, { accountId, ledger }: StatementRequest): Source[] {
  if (ledger === 'earnings') {
    const payouts = tx`payouts m WHERE m.account_id = ${accountId}`;
    return [earnings(tx, accountId), refundsGiven(tx, accountId), moved(tx, payouts, tx`m.created_at`, 'payout')];
  }
  const credits = tx`credits m WHERE m.account_id = ${accountId} AND m.reference IS NOT NULL`;
  const debits = tx`debits m WHERE m.account_id = ${accountId} AND m.state = 'taken'`;
  const corrections = tx`corrections m WHERE m.account_id = ${accountId} AND m.believe = 'redis' AND m.drift <> 0`;
  return [
    charges(tx, accountId),
    refundsReceived(tx, accountId),
    moved(tx, credits, tx`m.created_at`, 'credit'),
    moved(tx, debits, tx`m.ended_at`, 'debit'),
    moved(tx, corrections, tx`m.created_at`, 'correction'),
  ];
}

/** What an operator moved: rows of `credits`, `debits`, `corrections` or `payouts`. */
function moved(tx: Tx, from: Fragment, at: Fragment, kind: 'credit' | 'debit' | 'correction' | 'payout'): Source {
  const reason = kind === 'debit' || kind === 'correction' ? tx`m.reason` : tx`NULL::text`;
  // The amounts of debits and payouts are subtracted; a correction has its own sign.
  const amount = { credit: tx`m.amount`, debit: tx`-m.amount`, payout: tx`-m.amount`, correction: tx`m.drift` }[kind];
  return {
    from,
    at,
    rest: journalRest(tx),
    indexed: at,
    lagHours: 0,
    group: null,
    amount,
    columns: tx`${kind}::text AS kind, NULL::timestamptz AS first_at, NULL::bigint AS calls, NULL::uuid AS service_id, NULL::uuid AS usage_id, m.reference,
                ${reason} AS reason`,
    order: tx`${at} DESC, m.journal_id DESC`,
  };
}

/** A journal number as text of fixed length, so that texts compare as the numbers do. */
const journalRest = (tx: Tx) => tx`lpad(m.journal_id::text, 16, '0')`;

/** What the account got back for its calls. */
function refundsReceived(tx: Tx, accountId: string): Source {
  return {
    from: tx`refunds m WHERE m.account_id = ${accountId}`,
    at: tx`m.created_at`,
    rest: journalRest(tx),
    indexed: tx`m.created_at`,
    lagHours: 0,
    group: null,
    amount: tx`m.amount`,
    columns: tx`'refund' AS kind, NULL::timestamptz AS first_at, NULL::bigint AS calls, m.service_id, m.usage_id, m.reference, m.reason`,
    order: tx`m.created_at DESC, m.journal_id DESC`,
  };
}

/**
 * Two movements for each refund of a call that the account sold: first the platform returns its share, then the buyer is paid. In
 * the other order the balance could become negative.
 */
function refundsGiven(tx: Tx, accountId: string): Source {
  const parts = tx`(VALUES ('fee', m.fee, ''), ('refund', -m.amount, '-refund')) AS part (kind, amount, suffix)`;
  return {
    from: tx`refunds m CROSS JOIN LATERAL ${parts} WHERE m.provider_id = ${accountId} AND part.amount <> 0`,
    at: tx`m.created_at`,
    rest: tx`${journalRest(tx)} || part.suffix`,
    indexed: tx`m.created_at`,
    lagHours: 0,
    group: null,
    amount: tx`part.amount`,
    columns: tx`part.kind, NULL::timestamptz AS first_at, NULL::bigint AS calls, m.service_id, m.usage_id, m.reference, m.reason`,
    order: tx`m.created_at DESC, m.journal_id DESC, part.suffix DESC`,
  };
}

function charges(tx: Tx, accountId: string): Source {
  const last = tx`max(m.last_call_at)`;
  return {
    from: tx`key_hours m WHERE m.account_id = ${accountId} AND m.completed > 0`,
    at: last,
    rest: tx`m.service_id::text`,
    indexed: tx`m.hour`,
    lagHours: 1,
    // An hour has a row for each key of the account.
    group: tx`GROUP BY m.hour, m.service_id`,
    amount: tx`-m.spent`,
    columns: tx`'charge' AS kind, min(m.first_call_at) AS first_at, sum(m.completed)::bigint AS calls, m.service_id, NULL::uuid AS usage_id, NULL::text AS reference,
                NULL::text AS reason`,
    order: tx`m.hour DESC, ${last} DESC, m.service_id DESC`,
  };
}

/** Two movements for each hour and service: first what buyers paid, then the platform's share of it. */
function earnings(tx: Tx, accountId: string): Source {
  const parts = tx`(VALUES ('earning', m.charged, ''), ('fee', -m.fees, '-fee')) AS part (kind, amount, suffix)`;
  const takenBetween = (table: 'payouts' | 'refunds', owner: Fragment) => tx`
    (SELECT min(t.created_at) FROM ${tx.text(table)} t
     WHERE ${owner} = ${accountId} AND t.created_at >= m.first_call_at AND t.created_at <= m.last_call_at)`;
  const taken = tx`least(${takenBetween('payouts', tx`t.account_id`)}, ${takenBetween('refunds', tx`t.provider_id`)})`;
  const at = tx`least(m.last_call_at, ${taken})`;
  return {
    from: tx`service_hours m CROSS JOIN LATERAL ${parts} WHERE m.provider_id = ${accountId} AND part.amount <> 0`,
    at,
    // A hyphen sorts before the number of a journal row. So at one instant, what is earned comes before what is taken from it.
    rest: tx`'-' || m.service_id::text || part.suffix`,
    indexed: tx`m.hour`,
    lagHours: 1,
    group: null,
    amount: tx`part.amount`,
    columns: tx`part.kind, m.first_call_at AS first_at, m.completed AS calls, m.service_id, NULL::uuid AS usage_id, NULL::text AS reference,
                NULL::text AS reason`,
    order: tx`m.hour DESC, ${at} DESC, m.service_id DESC, part.suffix DESC`,
  };
}

async function selectBalance(tx: Tx, { accountId, ledger }: StatementRequest): Promise<number> {
  const rows = await tx<{ balance: number }[]>`
    SELECT balance FROM balances WHERE account_id = ${accountId} AND ledger = ${ledger}`;
  return rows[0]?.balance ?? 0;
}

/** The position before which all movements of the page lie; null if there is no such bound. The empty `rest` sorts before any other. */
function upperPosition({ before, toMs }: StatementRequest): Position | null {
  return before ?? (toMs === null ? null : { micros: toMs * 1000, rest: '' });
}

/** The sum of all movements at or after the page's upper position. */
async function sumNewer(tx: Tx, sources: readonly Source[], request: StatementRequest): Promise<number> {
  const upper = upperPosition(request);
  if (upper === null) return 0;
  const time = timeOf(tx, upper.micros);
  let sum = 0;
  for (const { from, amount, at, rest, indexed, lagHours, group } of sources) {
    const isNewer = tx`(${at}, ${rest} COLLATE "C") >= (${time}, ${upper.rest}::text)`;
    // The indexed time of a source may be up to `lagHours` earlier than `at`. Rows indexed after the bound are newer than it; those of
    // the hours before it must be compared.
    const parts =
      lagHours === 0
        ? [tx`SELECT ${amount} AS amount FROM ${from} AND ${indexed} >= ${time} AND ${isNewer}`]
        : [
            tx`SELECT ${amount} AS amount FROM ${from} AND ${indexed} > ${time}`,
            tx`SELECT ${group === null ? amount : tx`sum(${amount})`} AS amount
               FROM ${from} AND ${indexed} > ${time} - make_interval(hours => ${lagHours}) AND ${indexed} <= ${time}
               ${group === null ? tx`AND ${isNewer}` : tx`${group} HAVING ${isNewer}`}`,
          ];
    for (const part of parts) {
      const rows = await tx<{ sum: number }[]>`SELECT coalesce(sum(amount), 0)::bigint AS sum FROM (${part}) AS newer`;
      sum += rows[0]?.sum as number;
    }
  }
  return sum;
}

async function selectRows(tx: Tx, sources: readonly Source[], request: StatementRequest): Promise<readonly Row[]> {
  const newest = sources.map((source, i) => tx`${i === 0 ? tx`` : tx`UNION ALL`} (${newestOf(tx, source, request)})`);
  return tx<Row[]>`
    SELECT ${microsOf(tx, tx`m.at`)} AS micros, m.rest, m.kind, m.amount AS "amountMicros", m.first_at AS "from", m.calls,
           m.service_id AS "serviceId", s.name AS "serviceName", m.usage_id AS "usageId", m.reference, m.reason
    FROM (SELECT * FROM (${newest}) AS kinds ORDER BY at DESC, rest COLLATE "C" DESC LIMIT ${request.limit}) AS m
    LEFT JOIN services s ON s.id = m.service_id
    ORDER BY m.at DESC, m.rest COLLATE "C" DESC`;
}

/** The newest movements of one kind before the page's upper position and not before `fromMs`. */
function newestOf(tx: Tx, source: Source, request: StatementRequest): Fragment {
  const { from, amount, at, rest, indexed, lagHours, columns, group, order } = source;
  const upper = upperPosition(request);
  const until = timeOf(tx, upper?.micros ?? 0);
  const since = request.fromMs === null ? null : new Date(request.fromMs);
  const isBefore = upper && tx`(${at}, ${rest} COLLATE "C") < (${until}, ${upper.rest}::text)`;
  const isInRange = tx`${isBefore ?? tx`true`} ${since ? tx`AND ${at} >= ${since}` : tx``}`;
  return tx`
    SELECT ${at} AS at, ${rest} AS rest, ${group === null ? amount : tx`sum(${amount})::bigint`} AS amount, ${columns}
    FROM ${from}
      ${upper ? tx`AND ${indexed} <= ${until}` : tx``}
      ${since ? tx`AND ${indexed} >= ${since}::timestamptz - make_interval(hours => ${lagHours})` : tx``}
    ${group === null ? tx`AND ${isInRange}` : tx`${group} HAVING sum(${amount}) <> 0 AND ${isInRange}`}
    ORDER BY ${order} LIMIT ${request.limit}`;
}
