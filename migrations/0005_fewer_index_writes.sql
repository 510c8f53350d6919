-- Changes the tables that every flush writes for each account it touches. No rows are rewritten, so this takes only as long as it
-- waits for its locks. If a long query or a vacuum uses one of the tables, it fails after 5 s and must be tried again; otherwise
-- flushes would wait behind it.
SET LOCAL lock_timeout = '5s';

-- A flush may update every row of a page, and an update within the page needs room there for a second copy of the row. With 30 %
-- of the page free, more than half of the updates, over 100 000 accounts in turn, moved the row to another page and had to write
-- the index as well. Existing pages get emptier as their rows move.
ALTER TABLE balances SET (fillfactor = 50);
ALTER TABLE free_usage SET (fillfactor = 50);

-- No query looks for entries by account (the entries of a payout are found by its journal row), and each entry had to write a
-- random page of this index.
DROP INDEX entries_account;
