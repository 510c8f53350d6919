-- The result of the last comparison of Redis and Postgres in each shard, as the admin page shows it.
CREATE TABLE reconciliations (
  shard       int PRIMARY KEY,
  checked_at  timestamptz NOT NULL,
  report      json NOT NULL
);

-- Every change that the reconciliation made to a wallet in Redis. The row is written before the change. If its state stays
-- 'begun', the process died between the two, and the next comparison shows whether the change was made.
CREATE TABLE repairs (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id  uuid NOT NULL,
  made_by     text NOT NULL,
  reason      text NOT NULL,
  -- The values when the repair was decided. Calls go on meanwhile, so the wallet is changed by `change`, not set to a value.
  before      json NOT NULL,
  after       json NOT NULL,
  change      bigint NOT NULL,
  -- 'left': nothing was changed, because Redis had lost data, or another repair came before.
  state       text NOT NULL DEFAULT 'begun' CHECK (state IN ('begun', 'done', 'left')),
  created_at  timestamptz NOT NULL DEFAULT now(),
  ended_at    timestamptz
);
