import type { Tx } from '../../platform/postgres.ts';
import { budgetsOfText } from '../usage-event.ts';
import { LAST_ENDED_DEBIT_SQL } from '../wallets/debits-sql.ts';
import { type LatestBudgets, latestBudgetsSql } from '../wallets/latest-budgets-sql.ts';
import type { Numbers, Settled, Wallet } from './identity.ts';

// What a comparison asks Postgres about loaded wallets. Tested by test/ledger/reconcile/reconciler.test.ts and drop-idle.test.ts.

/** Loaded wallets by account. */
type Loaded = ReadonlyMap<string, Pick<Wallet, 'creditSeq'>>;

const CREDIT_SEQ = `coalesce((SELECT a.credit_seq FROM accounts a WHERE a.id = asked.id), 0) AS "creditSeq"`;
const DEBITS = `
  coalesce(debit.seq, 0) AS "debitSeq", coalesce(debit.total, 0) AS "debitedMicros",
  begun.seq AS "begunDebitSeq", begun.amount AS "begunDebitMicros"`;
const JOIN_DEBITS = `
  LEFT JOIN LATERAL (${LAST_ENDED_DEBIT_SQL}) debit ON true
  LEFT JOIN LATERAL (
    SELECT d.seq, d.amount FROM debits d WHERE d.account_id = asked.id AND d.state = 'begun') begun ON true`;

/** The last numbers of credits and debits of these accounts, by account. Accounts without any are left out. */
export type LastNumbers = {
  readonly creditSeqs: ReadonlyMap<string, number>;
  readonly debits: ReadonlyMap<string, Pick<Numbers, 'debitSeq'> & { readonly hasBegunDebit: boolean }>;
};

/** Credits and debits are read by two statements, so at two instants. This is harmless: a wallet with a later number stays. */
export async function selectLastNumbers(tx: Tx, accountIds: readonly string[]): Promise<LastNumbers> {
  // Postgres looks up a list in a third of the time of a join, which looks up each account separately. The ids can be joined to a
  // text here, because they need no quotes.
  const list = `{${accountIds.join(',')}}`;
  const [accounts, debits] = await Promise.all([
    tx<{ id: string; seq: number }[]>`
      SELECT id, credit_seq AS seq FROM accounts WHERE id = ANY(${list}::uuid[]) AND credit_seq > 0`,
    tx<{ id: string; debitSeq: number; hasBegunDebit: boolean }[]>`
      SELECT account_id AS id, coalesce(max(seq) FILTER (WHERE state <> 'begun'), 0) AS "debitSeq",
             bool_or(state = 'begun') AS "hasBegunDebit"
      FROM debits WHERE account_id = ANY(${list}::uuid[]) GROUP BY account_id`,
  ]);
  return {
    creditSeqs: new Map(accounts.map(({ id, seq }) => [id, seq])),
    debits: new Map(debits.map((row) => [row.id, row])),
  };
}

/** What Postgres has of each of these accounts, at one instant. */
export async function selectSettled(tx: Tx, wallets: Loaded): Promise<Map<string, Settled>> {
  const ids = Array.from(wallets.keys());
  const seqs = Array.from(wallets.values(), ({ creditSeq }) => creditSeq);
  type Row = Omit<Settled, 'freeUsed' | 'budgets' | 'missingRefunds'> & {
    readonly id: string;
    readonly free: Record<string, number> | null;
    readonly budgets: LatestBudgets;
    readonly refunds: readonly (readonly [amount: number, budgets: string])[] | null;
  };
  // One statement, and so one snapshot: the balance includes exactly the credits and debits counted here. `now()` is the start of
  // the transaction, before the wallets were read. A credit that was marked as applied before that had reached its wallet; if the
  // wallet lacks it, Redis lost it. The same applies if the mark lies hours ahead: the clock was wrong then, and waiting for that
  // time makes no sense. Sub-selects per account, because without statistics of `balances` a join read the whole table for every
  // page of 500 accounts, which took 130 ms with 100 000 accounts.
  const rows = await tx<Row[]>`
    SELECT asked.id,
           ${tx.text(CREDIT_SEQ)},
           coalesce((SELECT b.balance FROM balances b WHERE b.account_id = asked.id AND b.ledger = 'wallet'), 0)
             AS "balanceMicros",
           m.missing AS "missingCreditsMicros", m.lost AS "lostCreditsMicros", m.refunds,
           ${tx.text(DEBITS)},
           (SELECT json_object_agg(f.service_id, f.used) FROM free_usage f WHERE f.account_id = asked.id) AS free,
           ${tx.text(latestBudgetsSql('asked.id'))} AS budgets
    FROM unnest(${ids}::uuid[], ${seqs}::bigint[]) AS asked (id, seq)
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(c.amount), 0)::bigint AS missing,
             coalesce(sum(c.amount) FILTER (WHERE c.applied_at < now() OR c.applied_at > now() + interval '1 hour'), 0)::bigint AS lost,
             json_agg(json_build_array(c.amount, c.budgets)) FILTER (WHERE c.budgets IS NOT NULL) AS refunds
      FROM credits c WHERE c.account_id = asked.id AND c.seq > asked.seq) m
    ${tx.text(JOIN_DEBITS)}`;
  return new Map(
    rows.map(({ id, free, budgets, refunds, ...row }) => {
      const spending = Object.entries(budgets ?? {}).map(
        ([keyId, [period, spentMicros]]) => [keyId, { period, spentMicros }] as const,
      );
      const missingRefunds = (refunds ?? []).map(([amountMicros, text]) => ({
        amountMicros,
        budgets: budgetsOfText(text),
      }));
      const freeUsed = new Map(Object.entries(free ?? {}));
      return [id, { ...row, freeUsed, budgets: new Map(spending), missingRefunds }];
    }),
  );
}
