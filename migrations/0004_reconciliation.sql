-- What the comparison of Redis and Postgres last found in each shard, as the admin page shows it.
CREATE TABLE reconciliations (
  shard       int PRIMARY KEY,
  checked_at  timestamptz NOT NULL,
  report      json NOT NULL
);

-- Every change that the reconciliation made to a wallet in Redis. Written before the change: a row that stayed 'begun' is
-- of a process that died in between; whether the change was made shows in the next comparison.
CREATE TABLE repairs (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id  uuid NOT NULL,
  made_by     text NOT NULL,
  reason      text NOT NULL,
  -- As they were when it was decided. Calls go on meanwhile, so the wallet was changed by this much, not to a value.
  before      json NOT NULL,
  after       json NOT NULL,
  change      bigint NOT NULL,
  -- 'left': Redis lost something or another repair came before, and nothing was changed.
  state       text NOT NULL DEFAULT 'begun' CHECK (state IN ('begun', 'done', 'left')),
  created_at  timestamptz NOT NULL DEFAULT now(),
  ended_at    timestamptz
);
