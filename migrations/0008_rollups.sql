-- Sums of calls by hour, so that pages need not read every call. The writer adds to them in the transaction that stores the calls.
-- Both tables can be computed again from `calls` at any time; docs/design.md has the queries that compare them.
--
-- Only counted calls are in them: not free MCP messages, and not a provider's own calls of their own listing. The hour is that of
-- `created_at`, in UTC. Amounts are micro-USD.
SET LOCAL lock_timeout = '5s';

CREATE TABLE service_hours (
  service_id         uuid NOT NULL,
  hour               timestamptz NOT NULL,
  provider_id        uuid NOT NULL,
  calls              bigint NOT NULL,
  -- Calls with the outcome 'completed', whatever their status: what `free_calls`, `charged` and `fees` are about.
  completed          bigint NOT NULL,
  free_calls         bigint NOT NULL,
  -- Each call is in exactly one of the next eight, so their sum is `calls`.
  succeeded          bigint NOT NULL,
  caller_errors      bigint NOT NULL,
  caller_left        bigint NOT NULL,
  upstream_error     bigint NOT NULL,
  upstream_timeout   bigint NOT NULL,
  upstream_5xx       bigint NOT NULL,
  upstream_cut       bigint NOT NULL,
  unavailable        bigint NOT NULL,
  charged            bigint NOT NULL,
  fees               bigint NOT NULL,
  -- Of succeeded calls only.
  latency_sum_us     bigint NOT NULL,
  PRIMARY KEY (service_id, hour)
) WITH (fillfactor = 50);
CREATE INDEX service_hours_provider ON service_hours (provider_id, hour);
CREATE INDEX service_hours_hour ON service_hours (hour);

CREATE TABLE key_hours (
  key_id          text NOT NULL,
  hour            timestamptz NOT NULL,
  service_id      uuid NOT NULL,
  account_id      uuid NOT NULL,
  calls           int NOT NULL,
  free_calls      int NOT NULL,
  succeeded       int NOT NULL,
  -- Calls that the service failed: upstream_error, upstream_timeout, upstream_5xx and upstream_cut of `service_hours`.
  failed          int NOT NULL,
  spent           bigint NOT NULL,
  -- Of all calls whose latency is known. It is 0 in the record when the gateway died, or when the admission got no reply.
  latency_sum_us  bigint NOT NULL,
  latency_count   int NOT NULL,
  -- Of succeeded calls only.
  succeeded_us    bigint NOT NULL,
  last_call_at    timestamptz NOT NULL,
  PRIMARY KEY (key_id, hour, service_id)
) WITH (fillfactor = 50);
CREATE INDEX key_hours_account ON key_hours (account_id, hour);
CREATE INDEX key_hours_service ON key_hours (service_id, hour);

-- How many succeeded calls of a service took how long, by UTC day: a histogram with the buckets of src/ledger/rollups/latency-buckets.ts.
-- The calls of a day's buckets are as many as succeeded in its hours. In `service_hours`, 85 numbers in each row made reading the
-- earnings of a provider six times slower.
CREATE TABLE service_latencies (
  service_id  uuid NOT NULL,
  day         date NOT NULL,
  bucket      smallint NOT NULL,
  calls       bigint NOT NULL,
  PRIMARY KEY (service_id, day, bucket)
) WITH (fillfactor = 50);

-- How many counted calls of a service were charged which amount, by UTC day. Amounts are rounded to three digits, so that a service whose
-- price depends on the call has a bounded number of rows: at most 900 for each power of ten.
CREATE TABLE service_amounts (
  service_id  uuid NOT NULL,
  day         date NOT NULL,
  amount      bigint NOT NULL CHECK (amount > 0),
  calls       bigint NOT NULL,
  PRIMARY KEY (service_id, day, amount)
) WITH (fillfactor = 50);

-- Whether the transaction that stored the calls of a usage row also added them to the hours. True: yes. False: no, it was a writer
-- of the version before, which does not know this column. Null: no, the row is older than the column.
ALTER TABLE journal ADD COLUMN with_hours boolean;
ALTER TABLE journal ALTER COLUMN with_hours SET DEFAULT false;

-- Journal rows whose calls are not yet in the hours. Empty: the hours have all calls. `journal_id` 0 stands for all usage rows
-- with `with_hours` null. Those are all committed now, since adding the column waited for every transaction that had used the table.
CREATE TABLE rollup_backlog (
  journal_id  bigint PRIMARY KEY
);
INSERT INTO rollup_backlog SELECT 0 WHERE EXISTS (SELECT FROM calls);

-- At most one row: how far the job has come that adds the calls of `journal_ids` to the hours. It walks through all calls in the
-- order of day and id, and this is the last call that it has passed.
CREATE TABLE rollup_pass (
  only_row     boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  journal_ids  bigint[] NOT NULL,
  day          date NOT NULL,
  usage_id     uuid NOT NULL,
  started_at   timestamptz NOT NULL DEFAULT now()
);

-- Writers of the version before may run for a while. Their rows are noted here. For the new writer the trigger costs one
-- comparison per flush.
CREATE FUNCTION note_rollup_backlog() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO rollup_backlog (journal_id) VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER journal_without_hours AFTER INSERT ON journal
  FOR EACH ROW WHEN (NEW.kind = 'usage' AND NOT NEW.with_hours) EXECUTE FUNCTION note_rollup_backlog();
