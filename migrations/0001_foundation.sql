-- Truth for accounts, keys, listings, calls, journal and credits. Amounts are BIGINT micro-USD everywhere.

-- One row: what makes this installation itself. The secret keys the buyer pseudonyms that providers see.
CREATE TABLE installation (
  only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  pseudonym_secret  text NOT NULL DEFAULT gen_random_uuid()::text || gen_random_uuid()::text,
  created_at        timestamptz NOT NULL DEFAULT now()
);
INSERT INTO installation DEFAULT VALUES;

CREATE TABLE accounts (
  id          uuid PRIMARY KEY,
  -- The caller's free label. Not unique, not an identity.
  owner_id    text NOT NULL CHECK (length(owner_id) BETWEEN 1 AND 200),
  status      text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended')),
  -- Number of the last credit; Redis applies credits in this order, at most once each.
  credit_seq  bigint NOT NULL DEFAULT 0,
  created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
  key_id                  text PRIMARY KEY CHECK (key_id ~ '^acf_[0-9A-Za-z]{22}$'),
  account_id              uuid NOT NULL REFERENCES accounts,
  role                    text NOT NULL CHECK (role IN ('buyer', 'provider', 'admin')),
  -- SHA-256 of the secret, hex. The secret itself is stored nowhere.
  secret_hash             text NOT NULL CHECK (length(secret_hash) = 64),
  previous_secret_hash    text CHECK (length(previous_secret_hash) = 64),
  previous_expires_at     timestamptz,
  rate_limit              int NOT NULL DEFAULT 60 CHECK (rate_limit BETWEEN 1 AND 300),
  status                  text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'revoked')),
  created_at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_keys_account ON api_keys (account_id);
CREATE INDEX api_keys_admin ON api_keys (key_id) WHERE role = 'admin';

CREATE TABLE services (
  id               uuid PRIMARY KEY,
  provider_id      uuid NOT NULL REFERENCES accounts,
  name             text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  description      text NOT NULL CHECK (length(description) <= 2000),
  endpoint         text NOT NULL,
  price            bigint NOT NULL CHECK (price >= 0),
  free_calls       int NOT NULL DEFAULT 0 CHECK (free_calls >= 0),
  category         text NOT NULL,
  timeout_seconds  int NOT NULL CHECK (timeout_seconds BETWEEN 1 AND 300),
  status           text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'removed')),
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX services_provider ON services (provider_id);

-- One row per call, for ever. Partitioned by the day that follows from the UUIDv7, so (day, usage_id) is unique exactly
-- where usage_id is, and old days can be detached.
CREATE TABLE calls (
  day             date NOT NULL,
  usage_id        uuid NOT NULL,
  account_id      uuid NOT NULL,
  key_id          text NOT NULL,
  provider_id     uuid NOT NULL,
  service_id      uuid NOT NULL,
  method          text NOT NULL,
  path            text NOT NULL,
  -- What the caller was answered; 0 when the gateway died and nobody knows.
  status          smallint NOT NULL,
  -- What was charged in the end: 0 for free and refunded calls.
  amount          bigint NOT NULL CHECK (amount >= 0),
  fee             bigint NOT NULL CHECK (fee BETWEEN 0 AND amount),
  free_tier       boolean NOT NULL,
  outcome         text NOT NULL,
  latency_us      bigint NOT NULL,
  request_bytes   bigint NOT NULL,
  response_bytes  bigint NOT NULL,
  created_at      timestamptz NOT NULL,
  journal_id      bigint NOT NULL,
  PRIMARY KEY (day, usage_id)
) PARTITION BY RANGE (day);
CREATE INDEX calls_key ON calls (key_id, usage_id);
-- Rows of days nobody prepared (a clock far off) are kept rather than refused.
CREATE TABLE calls_default PARTITION OF calls DEFAULT;

-- Double entry. The entries of one journal row sum to zero. Ledgers of an account: 'wallet' (what a buyer can spend),
-- 'earnings' (what a provider is owed), and for the platform's own account 'fees' and 'cash' (money that came in from
-- outside, negative by nature).
CREATE TABLE journal (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('usage', 'credit', 'payout', 'repair')),
  reference   text,
  created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE entries (
  journal_id  bigint NOT NULL,
  account_id  uuid NOT NULL,
  ledger      text NOT NULL CHECK (ledger IN ('wallet', 'earnings', 'fees', 'cash')),
  amount      bigint NOT NULL,
  PRIMARY KEY (journal_id, account_id, ledger)
);
CREATE INDEX entries_account ON entries (account_id, ledger);

-- Projections of the journal and of calls: can be rebuilt from them.
CREATE TABLE balances (
  account_id  uuid NOT NULL,
  ledger      text NOT NULL,
  balance     bigint NOT NULL,
  PRIMARY KEY (account_id, ledger)
) WITH (fillfactor = 70);

CREATE TABLE free_usage (
  account_id  uuid NOT NULL,
  service_id  uuid NOT NULL,
  used        int NOT NULL,
  PRIMARY KEY (account_id, service_id)
) WITH (fillfactor = 70);

CREATE TABLE service_days (
  service_id   uuid NOT NULL,
  day          date NOT NULL,
  provider_id  uuid NOT NULL,
  calls        bigint NOT NULL,
  free_calls   bigint NOT NULL,
  earned       bigint NOT NULL,
  fees         bigint NOT NULL,
  PRIMARY KEY (service_id, day)
) WITH (fillfactor = 70);
CREATE INDEX service_days_provider ON service_days (provider_id, day);

CREATE TABLE credits (
  account_id  uuid NOT NULL REFERENCES accounts,
  seq         bigint NOT NULL,
  amount      bigint NOT NULL CHECK (amount > 0),
  reference   text NOT NULL UNIQUE,
  journal_id  bigint NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- Set once the wallet in Redis is known to hold it; until then the writer keeps trying.
  applied_at  timestamptz,
  PRIMARY KEY (account_id, seq)
);
CREATE INDEX credits_unapplied ON credits (account_id, seq) WHERE applied_at IS NULL;
