import { ApiError } from '../errors.js';
import { debitColumns } from '../ledger/wallets/debits-sql.js';
import { formatUsd, microsToUsd } from '../platform/money.js';
import { sqlState } from '../platform/postgres.js';
import { recordAct } from './audit.js';
const UNIQUE_VIOLATION = '23505';
/** How many other debits of the account, begun by other requests, one request ends before its own. More than that are a fault. */
const MAX_OTHERS = 5;
/**
 * Takes money out of a wallet: begins the debit in Postgres, lets the wallet in Redis decide, and stores the outcome. If this
 * process dies in between, or a store is away, the writer ends the debit, and so does a repetition of the request.
 *
 * @returns the debit, and whether it is new: with `created: false` it was taken before, with the same reference, account and
 *   amount. Null when there is no such account.
 * @throws ApiError `conflict` when the reference belongs to a debit of another account or amount, or when the wallet has less
 *   than the amount. In the second case nothing was taken, and the same reference may be sent again.
 */
export async function makeDebit(sql, carrier, wanted, by) {
    for (let others = 0; others <= MAX_OTHERS; others++) {
        const debit = await beginDebit(sql, wanted, by);
        if (debit === null)
            return null;
        if (debit.state === 'taken')
            return { debit, created: false };
        const ended = await carrier.carryOut(debit);
        if (debit.reference !== wanted.reference)
            continue;
        if (ended.debit.state === 'taken')
            return { debit: ended.debit, created: ended.isEndedHere };
        const balance = formatUsd(ended.balanceMicros);
        throw new ApiError('conflict', `amount: the wallet has ${balance} USD beside its holds.`, {
            fields: { balance: microsToUsd(ended.balanceMicros) },
        });
    }
    throw new Error(`other debits of ${wanted.accountId} begin as fast as they end`);
}
/**
 * @returns the debit of this reference, which may have been taken before; or another debit of the account that must end first; or
 *   null when there is no such account
 */
async function beginDebit(sql, wanted, by) {
    try {
        return await sql.begin((tx) => beginInTransaction(tx, wanted, by));
    }
    catch (error) {
        if (sqlState(error) !== UNIQUE_VIOLATION)
            throw error;
        // At the same moment a debit of another account began with this reference. It is committed by now, so the second attempt
        // finds it and throws `conflict`.
        return sql.begin((tx) => beginInTransaction(tx, wanted, by));
    }
}
async function beginInTransaction(tx, wanted, by) {
    const { accountId, amountMicros, reference, reason } = wanted;
    // Locking the account lets its debits begin one at a time. NO KEY UPDATE does not block inserts that merely refer to it.
    const accounts = await tx `SELECT FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
    if (accounts.length === 0)
        return null;
    const [stored] = await tx `
    SELECT ${debitColumns(tx)} FROM debits d WHERE d.reference = ${reference} AND d.state <> 'refused'`;
    if (stored !== undefined) {
        if (stored.accountId === accountId && stored.amountMicros === amountMicros)
            return stored;
        throw new ApiError('conflict', 'reference: belongs to a debit of another account or amount.');
    }
    const [last] = await tx `
    SELECT ${debitColumns(tx)} FROM debits d WHERE d.account_id = ${accountId} ORDER BY d.seq DESC LIMIT 1`;
    if (last?.state === 'begun')
        return last;
    const totalBefore = (last?.totalBeforeMicros ?? 0) + (last?.state === 'taken' ? last.amountMicros : 0);
    if (totalBefore + amountMicros > Number.MAX_SAFE_INTEGER) {
        throw new ApiError('conflict', 'amount: the debits of this account would sum to more than can be kept exactly.');
    }
    const act = { subjectType: 'account', subjectId: accountId, before: null };
    await recordAct(tx, {
        ...by,
        action: 'account.debit',
        ...act,
        after: { amount: microsToUsd(amountMicros), reference, reason },
    });
    const [begun] = await tx `
    INSERT INTO debits AS d (account_id, seq, amount, total_before, reference, reason)
    VALUES (${accountId}, ${(last?.seq ?? 0) + 1}, ${amountMicros}, ${totalBefore}, ${reference}, ${reason})
    RETURNING ${debitColumns(tx)}`;
    return begun;
}
//# sourceMappingURL=debits.js.map