// The SQL of debits, except the one that begins them (accounts/debits.ts). Tested by test/ledger/wallets/debit-wallets.test.ts.
import type { Sql, Tx } from '../../platform/postgres.ts';
import type { MoneyTransactions } from '../history/fence.ts';
import { insertJournal, type MovedBalance, movedBalance, PLATFORM_ACCOUNT_ID, postEntries } from '../posting.ts';

/** Money that an operator takes out of a wallet. */
export type Debit = {
  readonly accountId: string;
  /** Number of the debit within its account, from 1. */
  readonly seq: number;
  readonly amountMicros: number;
  /** The sum of all earlier debits of the account. */
  readonly totalBeforeMicros: number;
  /** The operator's own id, unique among all debits that are begun or taken. */
  readonly reference: string;
  readonly reason: string;
  /** 'begun': the wallet has not decided, or its decision is not stored yet. The other two are final. */
  readonly state: 'begun' | 'taken' | 'refused';
  /** When the debit was taken or refused; null while it is begun. */
  readonly endedAt: Date | null;
  /** The act in `audit` that began it. */
  readonly actId: number;
};

/** The columns of a `Debit`, of `debits AS d`. */
export const debitColumns = (sql: Sql | Tx) => sql`
  d.account_id AS "accountId", d.seq, d.amount AS "amountMicros", d.total_before AS "totalBeforeMicros", d.reference, d.reason,
  d.state, d.ended_at AS "endedAt", d.act_id AS "actId"`;

/**
 * The debits of `asked.id` that Postgres' balance includes: the number of the last one that ended, and the sum of all up to it. A
 * begun debit is not in the balance. No row if there is none. For a LATERAL join.
 */
export const LAST_ENDED_DEBIT_SQL = `
  SELECT d.seq, d.total_before + CASE d.state WHEN 'taken' THEN d.amount ELSE 0 END AS total
  FROM debits d WHERE d.account_id = asked.id AND d.state <> 'begun' ORDER BY d.seq DESC LIMIT 1`;

/**
 * At most `limit` debits that began at least `ageSeconds` ago and have not ended, of the accounts after `after`, in their order.
 * Includes debits that began in the future: the clock of Postgres was ahead then.
 */
export async function selectBegunDebits(
  sql: Sql,
  { after, ageSeconds, limit }: { after: string; ageSeconds: number; limit: number },
): Promise<Debit[]> {
  return sql<Debit[]>`
    SELECT ${debitColumns(sql)} FROM debits d
    WHERE d.state = 'begun' AND d.account_id > ${after}
      AND (d.created_at <= now() - make_interval(secs => ${ageSeconds}) OR d.created_at > now())
    ORDER BY d.account_id LIMIT ${limit}`;
}

/**
 * Stores what the wallet has decided, unless an outcome is already stored, with an act that says so. A debit that was taken is
 * posted in the same transaction: wallet down, the platform's cash up.
 *
 * @returns the stored debit, and whether this call ended it
 */
export async function endDebit(
  money: MoneyTransactions,
  { accountId, seq, amountMicros, reference, actId }: Debit,
  outcome: 'taken' | 'refused',
): Promise<{ readonly debit: Debit; readonly isEndedHere: boolean }> {
  return money.begin([accountId], async (tx) => {
    const [stored] = await tx<Debit[]>`
      SELECT ${debitColumns(tx)} FROM debits d WHERE d.account_id = ${accountId} AND d.seq = ${seq} FOR UPDATE`;
    if (stored === undefined) throw new Error(`debit ${seq} of ${accountId} is not in Postgres any more`);
    if (stored.state !== 'begun') return { debit: stored, isEndedHere: false };
    const journalId = outcome === 'taken' ? await insertJournal(tx, 'debit', reference) : null;
    const [ended] = await tx<Debit[]>`
      UPDATE debits AS d SET state = ${outcome}, journal_id = ${journalId}, ended_at = now()
      WHERE d.account_id = ${accountId} AND d.seq = ${seq} RETURNING ${debitColumns(tx)}`;
    if (journalId === null) {
      await recordEnd(tx, actId, 'refused', null);
    } else {
      const after = await postEntries(tx, journalId, [
        { accountId, ledger: 'wallet', amountMicros: -amountMicros },
        { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros },
      ]);
      await recordEnd(tx, actId, 'done', movedBalance('balance', after(accountId, 'wallet'), -amountMicros));
    }
    return { debit: ended as Debit, isEndedHere: true };
  });
}

/**
 * Adds the act that ends another one: its fields, the outcome, and the balance that it moved. The actor is the one who began it,
 * even if another process ends it.
 */
async function recordEnd(
  tx: Tx,
  actId: number,
  outcome: 'done' | 'refused',
  moved: MovedBalance | null,
): Promise<void> {
  const [begun] = await tx<{ after: object }[]>`SELECT after FROM audit WHERE id = ${actId}`;
  const [before, after] = [moved?.before ?? null, { ...begun?.after, ...moved?.after }];
  await tx`
    INSERT INTO audit (actor, actor_account_id, action, subject_type, subject_id, before, after, request_id, outcome)
    SELECT actor, actor_account_id, action, subject_type, subject_id, ${before === null ? null : JSON.stringify(before)}::text::json,
           ${JSON.stringify(after)}::text::json, request_id, ${outcome}
    FROM audit WHERE id = ${actId}`;
}
