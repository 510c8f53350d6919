-- The days whose calls left `calls` because they are older than USAGE_RETENTION_DAYS. The row is written by the transaction that takes
-- the day's calls out of `calls` and into the table calls_closed_YYYYMMDD, and completed by the one that drops that table. So a row
-- without `dropped_at` says that the calls are still there.
--
-- max(day) + 1 is the horizon: the writer stores no call of an earlier day, because nothing can tell any more whether it was stored
-- before. `calls_default` has a CHECK of the same day, which refuses such a call whatever version the writer is of.
CREATE TABLE closed_days (
  day              date PRIMARY KEY,
  closed_at        timestamptz NOT NULL DEFAULT now(),
  -- What was dropped. Amounts in micro-USD.
  calls            bigint,
  amount           bigint,
  fees             bigint,
  -- The last journal row of these calls: up to there calls and journal cannot be compared any more.
  last_journal_id  bigint,
  -- SHA-256 of the exported file, hex. Null when nothing was exported.
  file_sha256      text CHECK (length(file_sha256) = 64),
  dropped_at       timestamptz CHECK (dropped_at IS NULL OR num_nulls(calls, amount, fees, last_journal_id) = 0)
);
