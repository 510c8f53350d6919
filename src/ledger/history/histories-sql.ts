// What Postgres knows about the history of each shard. Tested by test/ledger/history/histories.test.ts.
import { olderPostgres, type PostgresSession } from '../../platform/postgres.ts';
import { judge, type Mark, type Seen, type ShardHistory, type Verdict, withDoubt } from './judge.ts';

/** Runs a statement in the open transaction: `query` of a session, or `unsafe` of a pool's transaction. */
type Run = PostgresSession['query'];

/** A shard as Redis and Postgres see it together. */
export type Judged = {
  readonly verdict: Verdict;
  /** Includes the doubt that the verdict adds, which is in Postgres after `storeDoubt` or `storeFlush`. */
  readonly history: ShardHistory;
  readonly seen: Seen;
  /** The last flush that Postgres has; null: none. */
  readonly lastFlush: Mark | null;
};

type Row = {
  shard: number;
  dataId: string | null;
  doubt: number;
  verified: number;
  flushId: number | null;
  token: string | null;
  isInJournal: boolean;
};

const SELECT_HISTORIES = `
SELECT asked.shard, h.data_id AS "dataId", coalesce(h.doubt, 0) AS doubt, coalesce(h.verified, 0) AS verified,
       last.id AS "flushId", last.token,
       EXISTS (SELECT FROM journal j WHERE j.id = asked.flush_id AND j.token = asked.token) AS "isInJournal"
FROM unnest($1::int[], $2::bigint[], $3::uuid[]) AS asked (shard, flush_id, token)
LEFT JOIN shard_histories h ON h.shard = asked.shard
LEFT JOIN journal last ON last.id = h.flush_id`;

/**
 * Judges shards by what was seen in Redis before. The statement has its own snapshot (READ COMMITTED), begun after that, so it
 * includes every flush that was trimmed by then.
 */
export async function judgeShards(run: Run, seen: ReadonlyMap<number, Seen>): Promise<ReadonlyMap<number, Judged>> {
  const marks = Array.from(seen.values(), ({ mark }) => mark);
  const rows = await run<Row>(SELECT_HISTORIES, [
    `{${Array.from(seen.keys()).join(',')}}`,
    `{${marks.map((mark) => mark?.flushId ?? 'NULL').join(',')}}`,
    `{${marks.map((mark) => mark?.token ?? 'NULL').join(',')}}`,
  ]);
  return new Map(rows.map((row) => [row.shard, judgedOf(row, seen.get(row.shard) as Seen)]));
}

function judgedOf({ dataId, doubt, verified, flushId, token, isInJournal }: Row, seen: Seen): Judged {
  const known = { dataId, doubt, verified };
  const verdict = judge(seen, known, seen.mark === null || isInJournal);
  const lastFlush = flushId === null ? null : { flushId, token: token as string };
  const history = verdict === 'redis may have changed' ? withDoubt(known, seen) : known;
  return { verdict, history, seen, lastFlush };
}

/** The shards whose Redis has the mark of a flush that Postgres lacks. */
export const olderShards = (judged: ReadonlyMap<number, Judged>): number[] =>
  Array.from(judged).flatMap(([shard, { verdict }]) => (verdict === 'postgres is older' ? [shard] : []));

/** @throws when Postgres is older than the Redis of any of the shards, because a Postgres goes back as a whole */
export function refuseOlder(judged: ReadonlyMap<number, Judged>): void {
  const shards = olderShards(judged);
  if (shards.length > 0) throw olderPostgres(shards);
}

const STORE_FLUSH = `
WITH stored AS (
  INSERT INTO shard_histories AS h (shard, data_id, doubt, flush_id)
  SELECT shard, data_id, doubt, $1::bigint FROM unnest($2::int[], $3::text[], $4::bigint[]) AS t (shard, data_id, doubt)
  ORDER BY shard
  ON CONFLICT (shard) DO UPDATE
    SET data_id = CASE WHEN excluded.doubt > h.doubt THEN excluded.data_id ELSE h.data_id END,
        -- Comparisons share the lock, so another one may have found a later doubt meanwhile.
        doubt = greatest(h.doubt, excluded.doubt), flush_id = coalesce(excluded.flush_id, h.flush_id))
SELECT token FROM journal WHERE id = $1::bigint`;

/**
 * Stores that a flush of these shards was committed with this transaction, and the doubt that it found. Call it under their flush locks,
 * with shards of which Postgres is not older.
 *
 * @returns the mark that the trims leave
 */
export async function storeFlush(run: Run, flushId: number, judged: ReadonlyMap<number, Judged>): Promise<Mark> {
  const [row] = await run<{ token: string }>(STORE_FLUSH, [String(flushId), ...columns(judged)]);
  if (row === undefined) throw new Error(`the flush ${flushId} has no row in the journal`);
  return { flushId, token: row.token };
}

const columns = (judged: ReadonlyMap<number, Judged>): string[] => {
  const all = Array.from(judged.values());
  return [
    `{${Array.from(judged.keys()).join(',')}}`,
    `{${all.map(({ seen }) => `"${seen.dataId}"`).join(',')}}`,
    `{${all.map(({ history }) => history.doubt).join(',')}}`,
  ];
};

/** Stores the doubt that a look found, so that the next look at the same data finds it as known. Call it under the flush locks. */
export async function storeDoubt(run: Run, judged: ReadonlyMap<number, Judged>): Promise<void> {
  await run(STORE_FLUSH, [null, ...columns(judged)]);
}

const STORE_VERIFIED = `
WITH its AS (UPDATE shard_histories SET verified = $2::bigint WHERE shard = $1::int AND verified <= $2::bigint RETURNING shard),
     clean AS (DELETE FROM accounts_in_doubt a USING its WHERE a.shard = its.shard AND a.account_id <> ALL($3::uuid[]))
INSERT INTO accounts_in_doubt (shard, account_id) SELECT its.shard, left_id FROM its, unnest($3::uuid[]) AS left_id
ON CONFLICT DO NOTHING`;

/**
 * Stores that a comparison of the shard, which began with this doubt, left nothing to repair; also stores the accounts that it left
 * in doubt. A comparison that began before another one that has ended stores nothing.
 */
export async function storeVerified(run: Run, shard: number, began: number, left: ReadonlySet<string>): Promise<void> {
  await run(STORE_VERIFIED, [shard, began, `{${Array.from(left).join(',')}}`]);
}

/** The accounts of the shard that were left in doubt when it was verified. */
export async function selectLeftInDoubt(run: Run, shard: number): Promise<ReadonlySet<string>> {
  const rows = await run<{ id: string }>('SELECT account_id AS id FROM accounts_in_doubt WHERE shard = $1::int', [
    shard,
  ]);
  return new Set(rows.map(({ id }) => id));
}
