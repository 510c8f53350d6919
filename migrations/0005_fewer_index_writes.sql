-- What every flush writes for every account it touches. No rows are rewritten: this takes as long as the locks do. A long query
-- or a vacuum that has one of these tables makes it fail after 5 s, to be tried again, rather than make flushes wait behind it.
SET LOCAL lock_timeout = '5s';

-- A flush may touch every row of a page, and updating a row in place takes the room for a second one beside it. With 30 %
-- left, more than half of the updates of 100 000 accounts in turn moved to another page and wrote the index as well.
-- Pages that are there already get emptier as their rows move.
ALTER TABLE balances SET (fillfactor = 50);
ALTER TABLE free_usage SET (fillfactor = 50);

-- No query looks for entries by account (a payout's are found by its journal row); a random page of it was written for
-- each entry.
DROP INDEX entries_account;
