import { createHash } from 'node:crypto';
import { recordAct } from '../accounts/audit.ts';
import { acceptShard } from '../ledger/history/accept.ts';
import { seeAll } from '../ledger/history/fence.ts';
import { type Judged, judgeShards } from '../ledger/history/histories-sql.ts';
import type { Mark } from '../ledger/history/judge.ts';
import { markText } from '../ledger/history/marks.ts';
import { type Loss, readLosses } from '../ledger/reconcile/losses.ts';
import { formatUsd } from '../platform/money.ts';
import { StartRefused } from '../platform/start-refused.ts';
import type { Stores } from './stores.ts';

type AcceptStores = Pick<Stores, 'sql' | 'redis' | 'keys' | 'installation'>;

type Options = {
  readonly print: (text: string) => void;
  /** The operator's answer, requested after the list was printed. */
  readonly answer: () => Promise<string>;
  /** Called for each shard between the two stores. Tests end the program here. */
  readonly afterCommit?: () => Promise<void> | void;
};

/** A shard of which Postgres is older. */
type Older = { readonly shard: number; readonly mark: Mark; readonly lastFlush: Mark | null };

const BY = { actor: 'system', actorAccountId: null, requestId: null } as const;

/**
 * The program `main.js accept-postgres`, for the case that the Postgres named by Redis's marks is gone for good. It lists what the
 * present Postgres lacks, and goes on with it if the operator writes that they accept exactly that.
 *
 *   marks, looked up ──► the list ──► `yes DIGEST` ──► each shard by itself: `acceptShard`
 *
 * If it is killed in the middle, run it again: shards that were accepted are not asked about any more.
 *
 * Tested by test/roles/accept-postgres.test.ts and test/integration/postgres-older.test.ts.
 *
 * @throws StartRefused when Redis does not answer for every shard, or the operator has not accepted
 */
export async function acceptPostgres(stores: AcceptStores, { print, answer, afterCommit }: Options): Promise<string> {
  const older = await findOlder(stores);
  if (older.length === 0) return 'Postgres lacks nothing that Redis knows to be stored: there is nothing to accept';
  const digest = digestOf(stores.installation, older);
  print(await listOf(stores, older));
  print(`\nTo go on with this Postgres and give all of that up, type: yes ${digest}\n`);
  if ((await answer()).trim() !== `yes ${digest}`) throw new StartRefused('not accepted: nothing was changed');
  for (const { shard, mark } of older) {
    const outcome = await acceptShard(stores, {
      shard,
      mark,
      record: (tx, accepted) =>
        recordAct(tx, {
          ...BY,
          action: 'reconciliation.accept_postgres',
          subjectType: 'reconciliation',
          subjectId: String(shard),
          before: { mark: markText(mark) },
          after: { mark: markText(accepted), digest },
        }),
      ...(afterCommit && { afterCommit }),
    });
    if (outcome === 'changed') {
      throw new StartRefused(`shard ${shard} has the mark of another flush by now: run this again`);
    }
  }
  return (
    `accepted for ${older.length} shards. The writer goes on, and the next comparison sets the wallets to what Postgres has: see ` +
    'GET /api/v1/admin/reconciliation. At once, repeat the revocations, suspensions, closings and limits that Postgres lacks, leaked keys first. ' +
    'Then repeat the credits, debits, payouts and refunds of calls that it lacks, with the references that they had: docs/runbooks/TollgatePostgresOlder.md'
  );
}

async function findOlder({ sql, redis, keys }: AcceptStores): Promise<readonly Older[]> {
  const { seen, away } = await seeAll(redis, keys);
  if (away.size > 0) {
    const [reason] = away.values();
    throw new StartRefused(`the Redis of shards ${Array.from(away.keys()).join(', ')} does not answer: ${reason}`);
  }
  const judged = await judgeShards(sql.unsafe, seen);
  const isOlder = ([, { verdict }]: [number, Judged]): boolean => verdict === 'postgres is older';
  return Array.from(judged)
    .filter(isOlder)
    .sort(([a], [b]) => a - b)
    .map(([shard, its]) => ({ shard, mark: its.seen.mark as Mark, lastFlush: its.lastFlush }));
}

/** Identifies what is accepted: these marks, by a Postgres with these flushes. */
function digestOf(installation: string, older: readonly Older[]): string {
  const lines = older.map((its) => `${its.shard} ${markText(its.mark)} ${markText(its.lastFlush)}`);
  return createHash('sha256')
    .update([installation, ...lines].join('\n'))
    .digest('hex')
    .slice(0, 12);
}

async function listOf(stores: AcceptStores, older: readonly Older[]): Promise<string> {
  const { losses, compared } = await readLosses(
    stores,
    older.map(({ shard }) => shard),
  );
  const labels = await readLabels(stores, losses);
  const sum = (of: readonly number[]): string => formatUsd(of.reduce((total, micros) => total + micros, 0));
  const differences = losses.map(({ walletMicros, expectedMicros }) => walletMicros - expectedMicros);
  return [
    `This Postgres is older than Redis in ${older.length} of ${stores.keys.shards} shards:`,
    ...older.map(
      ({ shard, mark, lastFlush }) =>
        `  shard ${shard}: Redis was trimmed after flush ${markText(mark)}; the last that Postgres has is ${markText(lastFlush) || 'none'}`,
    ),
    '',
    `Of ${compared} wallets that are loaded there, ${losses.length} are not what Postgres says (USD):`,
    ...losses.map((loss) => `  ${lossText(loss)}  ${labels.get(loss.accountId) ?? 'unknown to Postgres'}`),
    '',
    `In total, these wallets have ${sum(differences.map((micros) => Math.max(-micros, 0)))} less and ` +
      `${sum(differences.map((micros) => Math.max(micros, 0)))} more than this Postgres says: it lacks their calls and debits, or credits and refunds.`,
    'Earnings, payouts, revocations, suspensions, keys and listings that it lacks are not listed, nor are accounts without a loaded wallet.',
  ].join('\n');
}

function lossText(loss: Loss): string {
  const { accountId, walletMicros, expectedMicros, credits, debitedMicros, freeCalls, damagedFields } = loss;
  const parts = [
    `wallet ${formatUsd(walletMicros)}, by Postgres ${formatUsd(expectedMicros)}`,
    ...(credits > 0 ? [`${credits} credits or refunds`] : []),
    ...(debitedMicros !== 0 ? [`debits of ${formatUsd(debitedMicros)}`] : []),
    ...(freeCalls !== 0 ? [`${freeCalls} free calls`] : []),
    ...(damagedFields.length > 0 ? [`damaged: ${damagedFields.join(', ')}`] : []),
  ];
  const difference = walletMicros - expectedMicros;
  return `${accountId}  ${difference > 0 ? '+' : ''}${formatUsd(difference)}  (${parts.join('; ')})`;
}

async function readLabels({ sql }: AcceptStores, losses: readonly Loss[]): Promise<ReadonlyMap<string, string>> {
  const rows = await sql<{ id: string; label: string }[]>`
    SELECT id, owner_id AS label FROM accounts WHERE id = ANY(${losses.map(({ accountId }) => accountId)}::uuid[])`;
  return new Map(rows.map(({ id, label }) => [id, label]));
}
