import { insertJournal, PLATFORM_ACCOUNT_ID, postEntries } from '../posting.js';
/** The columns of a `Debit`, of `debits AS d`. */
export const debitColumns = (sql) => sql `
  d.account_id AS "accountId", d.seq, d.amount AS "amountMicros", d.total_before AS "totalBeforeMicros", d.reference, d.reason,
  d.state, d.ended_at AS "endedAt"`;
/**
 * What Postgres' balance includes of the debits of `asked.id`: the number of the last one that ended, and what all up to it have
 * taken. One that is begun is not in the balance. No row when there is none. For a LATERAL join.
 */
export const LAST_ENDED_DEBIT_SQL = `
  SELECT d.seq, d.total_before + CASE d.state WHEN 'taken' THEN d.amount ELSE 0 END AS total
  FROM debits d WHERE d.account_id = asked.id AND d.state <> 'begun' ORDER BY d.seq DESC LIMIT 1`;
/** At most `limit` debits that began at least `ageSeconds` ago and have not ended, of the accounts after `after`, in their order. */
export async function selectBegunDebits(sql, { after, ageSeconds, limit }) {
    return sql `
    SELECT ${debitColumns(sql)} FROM debits d
    WHERE d.state = 'begun' AND d.account_id > ${after} AND d.created_at <= now() - make_interval(secs => ${ageSeconds})
    ORDER BY d.account_id LIMIT ${limit}`;
}
/**
 * Stores what the wallet has decided, unless an outcome is stored already. A debit that was taken is posted in the same
 * transaction: wallet down, the platform's cash up.
 *
 * @returns the debit as it is stored now, and whether this call ended it
 */
export async function endDebit(sql, { accountId, seq, amountMicros, reference }, outcome) {
    return sql.begin(async (tx) => {
        const [stored] = await tx `
      SELECT ${debitColumns(tx)} FROM debits d WHERE d.account_id = ${accountId} AND d.seq = ${seq} FOR UPDATE`;
        if (stored === undefined)
            throw new Error(`debit ${seq} of ${accountId} is not in Postgres any more`);
        if (stored.state !== 'begun')
            return { debit: stored, isEndedHere: false };
        const journalId = outcome === 'taken' ? await insertJournal(tx, 'debit', reference) : null;
        const [ended] = await tx `
      UPDATE debits AS d SET state = ${outcome}, journal_id = ${journalId}, ended_at = now()
      WHERE d.account_id = ${accountId} AND d.seq = ${seq} RETURNING ${debitColumns(tx)}`;
        if (journalId !== null) {
            await postEntries(tx, journalId, [
                { accountId, ledger: 'wallet', amountMicros: -amountMicros },
                { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros },
            ]);
        }
        return { debit: ended, isEndedHere: true };
    });
}
//# sourceMappingURL=debits-sql.js.map