-- Truth for accounts, keys, listings, calls, journal and credits. Amounts are BIGINT micro-USD everywhere, days are UTC.

-- One row: what makes this installation itself.
CREATE TABLE installation (
  only_row          boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  -- Stored in Redis, too. A Redis with another id is refused before anything is read or changed there.
  id                uuid NOT NULL DEFAULT gen_random_uuid(),
  -- Keys the buyer pseudonyms that providers see.
  pseudonym_secret  text NOT NULL DEFAULT gen_random_uuid()::text || gen_random_uuid()::text,
  -- How the data in Redis are laid out: the number of shards, and which hash tags their keys have. The first process that opens Redis
  -- sets both. They stay, because with another layout most wallets would be looked for where they are not.
  redis_shards      int CHECK (redis_shards > 0),
  redis_layout      text CHECK (redis_layout IN ('single', 'cluster')),
  -- Since when `main.js reshard` takes the data out of Redis. Until it has ended, or was taken back, every start is refused.
  moving_since      timestamptz CHECK (moving_since IS NULL OR redis_shards IS NOT NULL),
  -- The hour (UTC) up to which `key_days` has all calls. It moves ahead once an hour (src/ledger/rollups/key-days.ts).
  days_summed_to    timestamptz NOT NULL DEFAULT date_trunc('hour', now(), 'UTC'),
  created_at        timestamptz NOT NULL DEFAULT now()
);
INSERT INTO installation DEFAULT VALUES;

-- ── Accounts and their keys ──

CREATE TABLE accounts (
  id          uuid PRIMARY KEY,
  -- The caller's free label. Not unique, not an identity.
  owner_id    text NOT NULL CHECK (length(owner_id) BETWEEN 1 AND 200),
  status      text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'closed')),
  -- Number of the last credit; Redis applies credits in this order, at most once each.
  credit_seq  bigint NOT NULL DEFAULT 0,
  created_at  timestamptz NOT NULL DEFAULT now(),
  closed_at   timestamptz,
  -- What the operator tells a suspended account.
  suspension_reason  text CHECK (length(suspension_reason) BETWEEN 1 AND 500),
  -- The first day whose calls have sums in account_days and account_key_days. NULL: it has few keys, and needs none.
  summed_from  date
);
-- Lists are newest first. The ids of accounts and listings are made of the time; those of keys are not.
CREATE INDEX accounts_status ON accounts (status, id);
-- The catalogs look for the suspended accounts every half minute; these are a few among many.
CREATE INDEX accounts_suspended ON accounts (id) WHERE status = 'suspended';
-- Each flush looks for the accounts of its calls here.
CREATE INDEX accounts_summed ON accounts (id) WHERE summed_from IS NOT NULL;

CREATE TABLE api_keys (
  key_id                  text PRIMARY KEY CHECK (key_id ~ '^acf_[0-9A-Za-z]{22}$'),
  account_id              uuid NOT NULL REFERENCES accounts,
  role                    text NOT NULL CHECK (role IN ('buyer', 'provider', 'admin')),
  -- SHA-256 of the secret, hex. The secret itself is stored nowhere.
  secret_hash             text NOT NULL CHECK (length(secret_hash) = 64),
  previous_secret_hash    text CHECK (length(previous_secret_hash) = 64),
  previous_expires_at     timestamptz,
  rate_limit              int NOT NULL DEFAULT 60 CHECK (rate_limit BETWEEN 1 AND 1000000),
  status                  text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'revoked')),
  created_at              timestamptz NOT NULL DEFAULT now(),
  -- An admin of another account issued it. Its account is told.
  by_operator             boolean NOT NULL DEFAULT false,
  -- What is shown wherever the key is.
  label                   text CHECK (length(label) <= 100),
  -- The keys above a child key: the one without a parent first, the parent last. It never changes.
  ancestors               text[] NOT NULL DEFAULT '{}' CHECK (cardinality(ancestors) <= 3),
  -- What the key and those below it may spend in a period, in micro-USD. Only child keys have budgets.
  budget_amount           bigint CHECK (budget_amount BETWEEN 0 AND 9007199254740991),
  budget_period           text CHECK (budget_period IN ('total', 'day', 'week', 'month')),
  -- How many budgets the key has been given: one that is given anew counts from 0.
  budget_number           int NOT NULL DEFAULT 0 CHECK (budget_number BETWEEN 0 AND 1000000),
  max_price               bigint CHECK (max_price >= 0),
  -- The services that it may call. NULL: all.
  services                uuid[],
  expires_at              timestamptz,
  CHECK ((budget_amount IS NULL) = (budget_period IS NULL))
);
CREATE INDEX api_keys_by_operator ON api_keys (account_id) WHERE by_operator;
CREATE INDEX api_keys_account ON api_keys (account_id);
-- When Redis is doubted, it forgets the trees of all accounts that have one: a few among many.
CREATE INDEX api_keys_children ON api_keys (account_id) WHERE ancestors <> '{}';
CREATE INDEX api_keys_admin ON api_keys (key_id) WHERE role = 'admin';
CREATE INDEX api_keys_newest ON api_keys (created_at, key_id);
CREATE INDEX api_keys_role ON api_keys (role, created_at, key_id);
CREATE INDEX api_keys_status ON api_keys (status, created_at, key_id);
CREATE INDEX api_keys_account_newest ON api_keys (account_id, created_at, key_id);

-- A browser in which a person is signed in with a key. It counts while the key is active and the secret that signed in is valid.
-- Rows that have expired are deleted when somebody signs in.
CREATE TABLE sessions (
  -- Names it in lists. Not a secret.
  id                          uuid PRIMARY KEY,
  key_id                      text NOT NULL REFERENCES api_keys,
  -- SHA-256 of the cookie and of what the page keeps beside it, hex. The sessions of one browser have the same.
  browser_hash                text NOT NULL CHECK (length(browser_hash) = 64),
  -- What it was before the last sign-in of the browser. It counts as well until the browser has shown that it got the new cookie: the
  -- answer may be lost. Null: it has not shown that.
  previous_browser_hash       text CHECK (length(previous_browser_hash) = 64),
  previous_until              timestamptz,
  -- As `api_keys.secret_hash` was when it signed in.
  secret_hash                 text NOT NULL CHECK (length(secret_hash) = 64),
  created_at                  timestamptz NOT NULL DEFAULT now(),
  -- When a bearer was last issued.
  last_used_at                timestamptz NOT NULL DEFAULT now(),
  expires_at                  timestamptz NOT NULL,
  -- How many bearers it was issued. The number makes each another one.
  bearers                     int NOT NULL DEFAULT 0,
  bearer_hash                 text CHECK (length(bearer_hash) = 64),
  bearer_expires_at           timestamptz,
  previous_bearer_hash        text CHECK (length(previous_bearer_hash) = 64),
  previous_bearer_expires_at  timestamptz,
  UNIQUE (browser_hash, key_id)
);
CREATE INDEX sessions_key ON sessions (key_id, last_used_at);
CREATE INDEX sessions_expired ON sessions (expires_at);
CREATE INDEX sessions_previous_browser ON sessions (previous_browser_hash) WHERE previous_browser_hash IS NOT NULL;

-- How many accounts each public address has opened today without a key, so that all gateways together keep to the limit. Rows of
-- earlier days are deleted when the next account is opened.
CREATE TABLE account_openings (
  day      date NOT NULL,
  -- An IPv4 address, or the /64 network of an IPv6 address.
  address  text NOT NULL,
  opened   int NOT NULL,
  PRIMARY KEY (day, address)
);

-- What providers say of themselves to buyers. No row: nothing. Closing the account deletes it.
CREATE TABLE profiles (
  account_id    uuid PRIMARY KEY REFERENCES accounts,
  display_name  text CHECK (length(display_name) BETWEEN 1 AND 60),
  contact       text CHECK (length(contact) BETWEEN 1 AND 200),
  url           text CHECK (length(url) BETWEEN 1 AND 500)
);

-- ── Listings ──

CREATE TABLE services (
  id                        uuid PRIMARY KEY,
  provider_id               uuid NOT NULL REFERENCES accounts,
  status                    text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'removed')),
  created_at                timestamptz NOT NULL DEFAULT now(),
  updated_at                timestamptz NOT NULL DEFAULT now(),

  name                      text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  description               text NOT NULL CHECK (length(description) <= 2000),
  category                  text NOT NULL,
  -- A page about the service, for people.
  docs_url                  text,

  endpoint                  text NOT NULL,
  protocol                  text NOT NULL DEFAULT 'http' CHECK (protocol IN ('http', 'mcp')),
  timeout_seconds           int NOT NULL CHECK (timeout_seconds BETWEEN 1 AND 300),
  -- The longest silence within a response, in seconds; null: the gateway's IDLE_BODY_SECONDS.
  idle_seconds              int CHECK (idle_seconds BETWEEN 1 AND 3600),
  -- The path below the endpoint that is asked every minute whether the service is up; null: it is not asked.
  health_path               text,

  price                     bigint NOT NULL CHECK (price >= 0),
  -- The highest amount that the service may report for a call; null: it reports none, and each call costs the price.
  max_price                 bigint,
  free_calls                int NOT NULL DEFAULT 0 CHECK (free_calls >= 0),
  -- Calls that match no operation are refused.
  only_operations           boolean NOT NULL DEFAULT false,
  -- What the provider wrote (an array of JSON objects); buyers read it one listing at a time.
  operations                json,
  -- What calls need of the operations, in short: [[method, path template, price, max price], …], or [[tool, price, max price], …] of an
  -- MCP server. Prices are in micro-USD, or null where the operation states none. Every gateway keeps it in memory for every listing.
  operation_terms           text,

  -- Terms by which a call may cost more than by those above: they count from `next_from`. After that time the row keeps them here
  -- until its terms change again, and readers of the row then take these. All are null if nothing is announced.
  next_from                 timestamptz,
  next_price                bigint,
  next_max_price            bigint,
  next_free_calls           int,
  next_only_operations      boolean,
  next_operations           json,
  next_operation_terms      text,

  -- What the listing adds to the calls that reach its service. Secrets are encrypted with SECRETS_KEY (src/secrets/).
  -- JSON: [[header name, sealed value], …]; null if the gateway adds none.
  upstream_headers          text,
  -- JSON: [[name, sealed value], …] of parameters that the gateway adds to the query; null if it adds none.
  upstream_query            text,
  -- JSON: [{"keyid", "secret": sealed, "until"?: milliseconds since the epoch}, …], newest first; null if calls are not signed.
  signing_keys              text,
  -- Names of credential headers that the service asks callers for, joined by commas; null if it asks for none.
  forward_headers           text,
  -- Pseudonyms of buyers whose calls are refused, joined by commas; null if there are none.
  blocked_buyers            text CHECK (length(blocked_buyers) < 8192),

  CONSTRAINT services_max_price CHECK (max_price >= price),
  -- If other calls are served at the listing's price, some spelling of a path might reach a more expensive operation at that price.
  CONSTRAINT services_dear_operations CHECK (only_operations OR NOT jsonb_path_exists(
    operation_terms::jsonb, 'strict $[*] ? (@[last - 1] > $price || @[last] > $most)',
    jsonb_build_object('price', price, 'most', coalesce(max_price, price)))),
  -- An operation with a max price of its own and without a price of its own has the listing's price.
  CONSTRAINT services_operation_max_price CHECK (NOT jsonb_path_exists(
    operation_terms::jsonb, 'strict $[*] ? (@[last - 1] == null && @[last] < $price)', jsonb_build_object('price', price))),
  CONSTRAINT services_only_operations CHECK (NOT only_operations OR operations IS NOT NULL),
  -- The same rules for the terms that are announced.
  CONSTRAINT services_next_terms CHECK (next_from IS NULL OR (
    next_price >= 0 AND next_free_calls >= 0 AND next_only_operations IS NOT NULL)),
  CONSTRAINT services_next_max_price CHECK (next_max_price >= next_price),
  CONSTRAINT services_next_dear_operations CHECK (next_only_operations OR NOT jsonb_path_exists(
    next_operation_terms::jsonb, 'strict $[*] ? (@[last - 1] > $price || @[last] > $most)',
    jsonb_build_object('price', next_price, 'most', coalesce(next_max_price, next_price)))),
  CONSTRAINT services_next_operation_max_price CHECK (NOT jsonb_path_exists(
    next_operation_terms::jsonb, 'strict $[*] ? (@[last - 1] == null && @[last] < $price)', jsonb_build_object('price', next_price))),
  CONSTRAINT services_next_only_operations CHECK (NOT next_only_operations OR next_operations IS NOT NULL)
);
CREATE INDEX services_provider ON services (provider_id);
CREATE INDEX services_provider_newest ON services (provider_id, id);
CREATE INDEX services_status ON services (status, id);
CREATE INDEX services_category ON services (category, id);
CREATE INDEX services_watched ON services (id) WHERE health_path IS NOT NULL;
-- For the reading that encrypts old values with a new key. Few listings have secrets.
CREATE INDEX services_with_secrets ON services (id) 
  WHERE upstream_headers IS NOT NULL OR upstream_query IS NOT NULL OR signing_keys IS NOT NULL;

-- What the gateway found when it asked. Not in `services`: a change there makes every gateway read the catalog again.
CREATE TABLE service_watch (
  service_id     uuid PRIMARY KEY,
  -- Whether the endpoint gave any HTTP answer when it was asked once. It says nothing about another endpoint than this.
  endpoint       text,
  reachable      boolean,
  -- Why it gave none (src/upstream/failure-texts.ts).
  failure        text,
  checked_at     timestamptz,
  -- How the last question by the health path ended: a status, or why there was none. SHA-256 of the endpoint and the path that were
  -- asked: of others it says nothing.
  health_asked   text,
  health_status  int,
  health_failure text,
  health_at      timestamptz,
  -- The process that moves this time ahead asks the health path, so only one does.
  health_due_at  timestamptz,
  -- Checks and those with a good answer, within 24 hours and 30 days.
  checks_day     int NOT NULL DEFAULT 0,
  up_day         int NOT NULL DEFAULT 0,
  checks_month   int NOT NULL DEFAULT 0,
  up_month       int NOT NULL DEFAULT 0
) WITH (fillfactor = 70);

CREATE TABLE service_health_hours (
  service_id  uuid NOT NULL,
  hour        timestamptz NOT NULL,
  checks      int NOT NULL,
  up          int NOT NULL,
  PRIMARY KEY (service_id, hour)
) WITH (fillfactor = 70);
CREATE INDEX service_health_hours_hour ON service_health_hours (hour);

-- ── Calls ──

-- One row per call. Partitioned by the day that follows from the UUIDv7, so (day, usage_id) is unique exactly
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
  -- Of a call priced by use; NULL at a fixed price. What its service was told that it may charge, whether it reported more, and
  -- whether the call was charged the highest price of its listing or operation.
  authorized      bigint CHECK (authorized >= 0),
  clamped         boolean,
  at_cap          boolean,
  -- Why the service failed the call, for its provider alone; NULL where it did not, or the status says it.
  cause           text,
  -- The budgets that the amount counted in, each as <key>.<period>, separated by commas; NULL: in none.
  budgets         text,
  -- Whom or what the call was for, in the words of its caller; NULL: it said nothing. It may name somebody.
  tag             text,
  PRIMARY KEY (day, usage_id)
) PARTITION BY RANGE (day);
CREATE INDEX calls_key ON calls (key_id, usage_id);
-- Calls without a tag cost it nothing.
CREATE INDEX calls_tag ON calls (account_id, tag, usage_id) WHERE tag IS NOT NULL;
-- Rows of days nobody prepared (a clock far off) are kept rather than refused.
CREATE TABLE calls_default PARTITION OF calls DEFAULT;

-- The days whose calls left `calls` because they are older than USAGE_RETENTION_DAYS. The row is written by the transaction that takes
-- the day's calls out of `calls` and into the table calls_closed_YYYYMMDD, and completed by the one that drops that table. So a row
-- without `dropped_at` says that the calls are still there.
--
-- max(day) + 1 is the horizon: the writer stores no call of an earlier day, because nothing can tell any more whether it was stored
-- before. `calls_default` has a CHECK of the same day, which refuses such a call whatever version the writer is of.
CREATE TABLE closed_days (
  day              date PRIMARY KEY,
  closed_at        timestamptz NOT NULL DEFAULT now(),
  -- What was dropped.
  calls            bigint,
  amount           bigint,
  fees             bigint,
  -- The last journal row of these calls: up to there calls and journal cannot be compared any more.
  last_journal_id  bigint,
  -- SHA-256 of the exported file, hex. Null when nothing was exported.
  file_sha256      text CHECK (length(file_sha256) = 64),
  dropped_at       timestamptz CHECK (dropped_at IS NULL OR num_nulls(calls, amount, fees, last_journal_id) = 0)
);

-- Usage events that the writer could not turn into a call: kept here, whole, so that one of them neither blocks the
-- stream nor is lost. Each was charged or refunded in Redis and is missing from the books until somebody looks.
CREATE TABLE rejected_events (
  shard       int NOT NULL,
  stream_id   text NOT NULL,
  -- Names and values as they stood in the stream. `json`, not `jsonb`: it can hold an escaped NUL.
  fields      json NOT NULL,
  error       text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (shard, stream_id)
);

-- ── Money ──

-- Double entry. The entries of one journal row sum to zero. Ledgers of an account: 'wallet' (what a buyer can spend),
-- 'earnings' (what a provider is owed), and for the platform's own account 'fees' and 'cash' (money that came in from
-- outside, negative by nature).
CREATE TABLE journal (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('usage', 'credit', 'payout', 'debit', 'correction', 'refund')),
  reference   text,
  -- With the id it names the row for good: a Postgres that went back gives the id to another row.
  token       uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at  timestamptz NOT NULL DEFAULT now()
);
-- Payouts of a provider are few among millions of flushes of usage; without this, finding them reads them all.
CREATE INDEX journal_payouts ON journal (id) WHERE kind = 'payout';

-- Without an index by account: no query looks for entries by account (those of a payout are found by its journal row), and each entry
-- would have to write a random page of it.
CREATE TABLE entries (
  journal_id  bigint NOT NULL,
  account_id  uuid NOT NULL,
  ledger      text NOT NULL CHECK (ledger IN ('wallet', 'earnings', 'fees', 'cash')),
  amount      bigint NOT NULL,
  PRIMARY KEY (journal_id, account_id, ledger)
);

-- Projections of the journal and of calls: can be rebuilt from them.
--
-- A flush may update every row of a page, and an update within the page needs room there for a second copy of the row. With 30 %
-- of the page free, more than half of the updates, over 100 000 accounts in turn, moved the row to another page and had to write
-- the index as well. So half of each page is left free, here and in the sums below.
CREATE TABLE balances (
  account_id  uuid NOT NULL,
  ledger      text NOT NULL,
  balance     bigint NOT NULL,
  PRIMARY KEY (account_id, ledger)
) WITH (fillfactor = 50);

CREATE TABLE free_usage (
  account_id  uuid NOT NULL,
  service_id  uuid NOT NULL,
  used        int NOT NULL,
  PRIMARY KEY (account_id, service_id)
) WITH (fillfactor = 50);

-- What the keys with a budget, and those below them, have spent in each period (src/keys/budget-period.ts). Kept by the flush, from what
-- the events say.
CREATE TABLE budget_usage (
  account_id  uuid NOT NULL,
  key_id      text NOT NULL,
  period      bigint NOT NULL,
  spent       bigint NOT NULL,
  PRIMARY KEY (account_id, key_id, period)
) WITH (fillfactor = 50);

-- How many calls the budget of a key has refused, in the latest period in which it refused one. Counted by gateways every few seconds, as
-- best they can: no money depends on it.
CREATE TABLE budget_refusals (
  key_id     text PRIMARY KEY,
  -- When the next period begins; infinity: the budget has one period.
  resets_at  timestamptz NOT NULL,
  calls      bigint NOT NULL
) WITH (fillfactor = 50);

-- The last call of a key that the balance of its account did not cover, and how many there were on its day (UTC). Counted as
-- `budget_refusals`.
CREATE TABLE balance_refusals (
  key_id      text PRIMARY KEY,
  account_id  uuid NOT NULL,
  service_id  uuid NOT NULL,
  -- What would have been held.
  required    bigint NOT NULL,
  refused_at  timestamptz NOT NULL,
  calls       bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX balance_refusals_account ON balance_refusals (account_id);

-- How often the answer to a call with an `Idempotency-Key` was given again. Counted by gateways every few seconds, as best they can: no money
-- depends on it. A call without a row was answered once. The rows of a day leave with its calls, or with those of the next day.
CREATE TABLE call_replays (
  -- As in `calls`. The row may be there a moment before the call.
  day       date NOT NULL,
  usage_id  uuid NOT NULL,
  replays   bigint NOT NULL CHECK (replays > 0),
  PRIMARY KEY (day, usage_id)
);

-- What the wallet in Redis gets, in the order of the numbers: money that came in, and refunds of calls.
CREATE TABLE credits (
  account_id  uuid NOT NULL REFERENCES accounts,
  seq         bigint NOT NULL,
  amount      bigint NOT NULL CHECK (amount > 0),
  -- NULL: a refund, whose row in `refunds` has one.
  reference   text UNIQUE,
  journal_id  bigint NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  -- Set once the wallet in Redis is known to hold it; until then the writer keeps trying.
  applied_at  timestamptz,
  -- Of a refund: the budgets whose spending it lowers, as in `calls`.
  budgets     text CHECK (budgets IS NULL OR reference IS NULL),
  PRIMARY KEY (account_id, seq)
);
CREATE INDEX credits_unapplied ON credits (account_id, seq) WHERE applied_at IS NULL;
-- Lists and statements read money by time.
CREATE INDEX credits_time ON credits (created_at, journal_id) WHERE reference IS NOT NULL;
CREATE INDEX credits_account_time ON credits (account_id, created_at, journal_id) WHERE reference IS NOT NULL;

-- Money taken out of a wallet other than by calls. The row is written before the wallet in Redis decides (docs/decisions/0037):
-- 'begun' until the decision is stored, then 'taken' or 'refused' for ever.
CREATE TABLE debits (
  account_id    uuid NOT NULL REFERENCES accounts,
  -- Number of the debit within its account, from 1. A number is never used again, also when its debit was refused.
  seq           bigint NOT NULL CHECK (seq > 0),
  amount        bigint NOT NULL CHECK (amount > 0),
  -- What all earlier debits of the account have taken. The wallet has such a sum, too, so the two can be compared.
  total_before  bigint NOT NULL CHECK (total_before >= 0),
  reference     text NOT NULL,
  reason        text NOT NULL,
  state         text NOT NULL DEFAULT 'begun' CHECK (state IN ('begun', 'taken', 'refused')),
  journal_id    bigint CHECK ((journal_id IS NOT NULL) = (state = 'taken')),
  created_at    timestamptz NOT NULL DEFAULT now(),
  ended_at      timestamptz CHECK ((ended_at IS NULL) = (state = 'begun')),
  -- The act in `audit` that began it. Who did it also has the act that ends it.
  act_id        bigint NOT NULL,
  PRIMARY KEY (account_id, seq)
);
-- A debit that was refused took nothing, so its reference may be tried again.
CREATE UNIQUE INDEX debits_reference ON debits (reference) WHERE state <> 'refused';
-- One debit of an account is decided at a time.
CREATE UNIQUE INDEX debits_begun ON debits (account_id) WHERE state = 'begun';
CREATE INDEX debits_time ON debits (ended_at, journal_id) WHERE state = 'taken';
CREATE INDEX debits_account ON debits (account_id, ended_at, journal_id) WHERE state = 'taken';

-- Money paid to a provider outside. It leaves the earnings ledger.
CREATE TABLE payouts (
  journal_id  bigint PRIMARY KEY,
  account_id  uuid NOT NULL REFERENCES accounts,
  amount      bigint NOT NULL CHECK (amount > 0),
  reference   text NOT NULL UNIQUE,
  created_at  timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX payouts_time ON payouts (created_at, journal_id);
CREATE INDEX payouts_account ON payouts (account_id, created_at, journal_id);

-- What of a call's amount was given back after the call: by its provider, or by an operator. The row of the call stays as it is.
CREATE TABLE refunds (
  journal_id    bigint PRIMARY KEY,
  usage_id      uuid NOT NULL,
  -- The buyer, and the number of the credit that brings the money into its wallet.
  account_id    uuid NOT NULL REFERENCES accounts,
  credit_seq    bigint NOT NULL,
  provider_id   uuid NOT NULL REFERENCES accounts,
  service_id    uuid NOT NULL,
  key_id        text NOT NULL,
  -- When the call began, and whether it counts as succeeded in the sums of calls.
  call_at       timestamptz NOT NULL,
  succeeded     boolean NOT NULL,
  amount        bigint NOT NULL CHECK (amount > 0),
  -- The part of it that the platform gave back of its fee. The rest is the provider's.
  fee           bigint NOT NULL CHECK (fee BETWEEN 0 AND amount),
  -- The part that the provider's earnings did not cover, so that the platform carries it until they do.
  carried       bigint NOT NULL DEFAULT 0 CHECK (carried BETWEEN 0 AND amount - fee),
  -- What earlier refunds of the call have given back: they follow each other.
  total_before  bigint NOT NULL CHECK (total_before >= 0),
  -- With this one all of the call's amount is back.
  whole         boolean NOT NULL,
  reason        text NOT NULL,
  -- Who gave it: the provider's account, or the platform's for all operators. Each has references of its own.
  given_by      uuid NOT NULL,
  reference     text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  UNIQUE (usage_id, total_before),
  -- The reference first: operators look for one without knowing who gave it.
  UNIQUE (reference, given_by),
  FOREIGN KEY (account_id, credit_seq) REFERENCES credits
);
CREATE INDEX refunds_time ON refunds (created_at, journal_id);
CREATE INDEX refunds_account ON refunds (account_id, created_at, journal_id);
CREATE INDEX refunds_provider ON refunds (provider_id, created_at, journal_id);
CREATE INDEX refunds_carried ON refunds (provider_id) WHERE carried > 0;

-- ── Sums of calls, so that pages need not read every call ──

-- The writer adds to all of them in the transaction that stores the calls. They can be computed again from `calls` at any time;
-- docs/design.md has the queries that compare them.
--
-- Only counted calls are in them: not free MCP messages, and not a provider's own calls of their own listing. The hour is that of
-- `created_at`, in UTC.
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
  -- Completed calls priced by use that were not free, and those of them that were charged the highest price.
  by_use             bigint NOT NULL DEFAULT 0,
  at_cap             bigint NOT NULL DEFAULT 0,
  -- When the first and the last of the calls began: a statement shows their sum from then to then.
  first_call_at      timestamptz NOT NULL,
  last_call_at       timestamptz NOT NULL,
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
  -- As in `service_hours`: `free_calls` and `spent` are of these.
  completed       int NOT NULL,
  free_calls      int NOT NULL,
  succeeded       int NOT NULL,
  -- Calls that the service failed: upstream_error, upstream_timeout, upstream_5xx and upstream_cut of `service_hours`.
  failed          int NOT NULL,
  -- Of all calls whose latency is known. It is 0 in the record when the gateway died, or when the admission got no reply.
  latency_count   int NOT NULL,
  spent           bigint NOT NULL,
  latency_sum_us  bigint NOT NULL,
  -- Of succeeded calls only.
  succeeded_us    bigint NOT NULL,
  first_call_at   timestamptz NOT NULL,
  last_call_at    timestamptz NOT NULL,
  PRIMARY KEY (key_id, hour, service_id)
) WITH (fillfactor = 50);
CREATE INDEX key_hours_account ON key_hours (account_id, hour);
CREATE INDEX key_hours_service ON key_hours (service_id, hour);

-- The sums of `key_hours` that pages of usage add up, by UTC day: such a page may be of a thousand keys and of years. Only of hours before
-- `installation.days_summed_to`: a job adds each hour when it is over, and a flush its late calls.
CREATE TABLE key_days (
  key_id          text NOT NULL,
  day             date NOT NULL,
  service_id      uuid NOT NULL,
  account_id      uuid NOT NULL,
  calls           int NOT NULL,
  free_calls      int NOT NULL,
  spent           bigint NOT NULL,
  latency_sum_us  bigint NOT NULL,
  latency_count   int NOT NULL,
  PRIMARY KEY (key_id, day, service_id)
) WITH (fillfactor = 50);
-- For one service of an account. Of all services, `account_days` and `account_key_days` have the sums, or the keys are few.
CREATE INDEX key_days_account ON key_days (account_id, service_id, day);

-- The sums by day of accounts with many keys, by service and by key: a thousand keys that each call fifty services have 1 500 000 rows
-- of `key_days` in a month, and 1 500 and 30 000 here. Only of days from `accounts.summed_from` on.
CREATE TABLE account_days (
  account_id      uuid NOT NULL,
  day             date NOT NULL,
  service_id      uuid NOT NULL,
  calls           bigint NOT NULL,
  free_calls      bigint NOT NULL,
  spent           bigint NOT NULL,
  latency_sum_us  bigint NOT NULL,
  latency_count   bigint NOT NULL,
  PRIMARY KEY (account_id, day, service_id)
) WITH (fillfactor = 50);
CREATE TABLE account_key_days (
  account_id      uuid NOT NULL,
  day             date NOT NULL,
  key_id          text NOT NULL,
  calls           bigint NOT NULL,
  free_calls      bigint NOT NULL,
  spent           bigint NOT NULL,
  latency_sum_us  bigint NOT NULL,
  latency_count   bigint NOT NULL,
  PRIMARY KEY (account_id, day, key_id)
) WITH (fillfactor = 50);

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

-- Sums of the calls with a tag, by tag and UTC day. At most 1 000 tags of an account have sums in a month, those that `tag_months` has; the
-- calls of all others are summed up as the tag 'other'. Both tables are deleted from when days leave `calls`, because tags may name
-- somebody (src/ledger/retention/close-day.ts).
CREATE TABLE tag_days (
  account_id      uuid NOT NULL,
  day             date NOT NULL,
  tag             text NOT NULL,
  calls           bigint NOT NULL,
  free_calls      bigint NOT NULL,
  spent           bigint NOT NULL,
  latency_sum_us  bigint NOT NULL,
  latency_count   bigint NOT NULL,
  PRIMARY KEY (account_id, day, tag)
) WITH (fillfactor = 50);
CREATE INDEX tag_days_day ON tag_days (day);
CREATE TABLE tag_months (
  account_id  uuid NOT NULL,
  -- The first day of the month.
  month       date NOT NULL,
  tag         text NOT NULL,
  PRIMARY KEY (account_id, month, tag)
);
CREATE INDEX tag_months_month ON tag_months (month);

-- Sums of refunds, by the hour of their calls: the sums of calls above stay what `calls` says. Added by the transaction that stores the
-- refund; they can be computed again from `refunds`.
CREATE TABLE refund_hours (
  key_id           text NOT NULL,
  hour             timestamptz NOT NULL,
  service_id       uuid NOT NULL,
  account_id       uuid NOT NULL,
  provider_id      uuid NOT NULL,
  refunds          bigint NOT NULL,
  amount           bigint NOT NULL,
  fees             bigint NOT NULL,
  -- Calls that were given back whole, and those of them that had succeeded.
  whole            bigint NOT NULL,
  whole_succeeded  bigint NOT NULL,
  PRIMARY KEY (key_id, hour, service_id)
) WITH (fillfactor = 50);
CREATE INDEX refund_hours_service ON refund_hours (service_id, hour);
CREATE INDEX refund_hours_account ON refund_hours (account_id, hour);
CREATE INDEX refund_hours_provider ON refund_hours (provider_id, hour);
CREATE INDEX refund_hours_hour ON refund_hours (hour);

-- The quality of each service whose calls have been judged, and what it was made from (docs/quality.md). It can be computed again from
-- key_hours at any time. Services without a row have the neutral quality.
CREATE TABLE service_quality (
  service_id    uuid PRIMARY KEY,
  -- 0 to 100, with one decimal.
  quality       real NOT NULL CHECK (quality BETWEEN 0 AND 100),
  -- The quality less that of seven days before, with one decimal; null when too little was known then.
  trend         real,
  -- Catalogs sort by this; see docs/quality.md.
  lower_bound   real NOT NULL CHECK (lower_bound BETWEEN 0 AND 100),
  -- How many calls' worth of evidence there is, after ageing and after the diminishing weight of each buyer.
  evidence      real NOT NULL,
  -- The weighted share of calls that succeeded, without the prior.
  success_rate  real NOT NULL CHECK (success_rate BETWEEN 0 AND 1),
  -- The typical latency in microseconds; null when no latency is known.
  latency_us    bigint,
  buyers        int NOT NULL,
  -- Calls of the last 30 days that count, to three digits, and the share of them that succeeded.
  calls         bigint NOT NULL,
  calls_succeeded numeric(4, 3) NOT NULL CHECK (calls_succeeded BETWEEN 0 AND 1),
  -- When something that gateways show last changed. They read what has changed since they last looked.
  changed_at    timestamptz NOT NULL,
  computed_at   timestamptz NOT NULL
);
CREATE INDEX service_quality_changed ON service_quality (changed_at);

-- ── Redis compared with this database ──

-- What is known of the history of each shard (src/ledger/history/): written by flushes and comparisons.
CREATE TABLE shard_histories (
  shard     int PRIMARY KEY,
  -- Which data its Redis had at the last look: run id and replication id.
  data_id   text NOT NULL,
  -- How often Redis may have changed under us, and the `doubt` with which the last clean comparison began.
  doubt     bigint NOT NULL,
  verified  bigint NOT NULL DEFAULT 0 CHECK (verified <= doubt),
  -- The journal row of the last flush. Null: nothing of this shard was flushed yet.
  flush_id  bigint
);

-- Accounts that stay in doubt although a comparison has verified their shard: the wallet had a credit or a debit that Postgres lacked.
CREATE TABLE accounts_in_doubt (
  shard       int,
  -- Without a reference to `accounts`: a Postgres that was restored may lack the account of a wallet.
  account_id  uuid,
  PRIMARY KEY (shard, account_id)
);

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

-- How operators ended drifts that the comparison may not repair.
CREATE TABLE corrections (
  reference     text PRIMARY KEY,
  -- Without a reference to `accounts`: a Postgres that was restored may lack the account of a wallet.
  account_id    uuid NOT NULL,
  -- The store that was right; the other one was changed.
  believe       text NOT NULL CHECK (believe IN ('postgres', 'redis')),
  reason        text NOT NULL,
  made_by       text NOT NULL,
  -- What was wrong: how much the wallet had more than the books, its counters of free calls and of
  -- budgets, and the holds of stored calls.
  drift         bigint NOT NULL,
  free_calls    json NOT NULL,
  budgets       json NOT NULL,
  stored_holds  int NOT NULL,
  -- The journal row that changed the books, or the row of `repairs` for the change of the wallet. A correction whose repair is 'left'
  -- has changed nothing, and may be tried again.
  journal_id    bigint CHECK ((journal_id IS NOT NULL) = (believe = 'redis')),
  repair_id     bigint CHECK ((repair_id IS NOT NULL) = (believe = 'postgres')),
  created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX corrections_newest ON corrections (created_at);
-- For statements, which show the money that the books got or lost.
CREATE INDEX corrections_account_time ON corrections (account_id, created_at, journal_id) WHERE believe = 'redis' AND drift <> 0;

-- ── What operators did ──

-- Every act in the operator's name, stored by the transaction that carries it out. Rows are never changed, except that closing an account
-- erases the names in the rows about it.
CREATE TABLE audit (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at                timestamptz NOT NULL DEFAULT now(),
  -- The id of the API key that acted; 'create-admin' or 'system' where no key did.
  actor             text NOT NULL,
  actor_account_id  uuid,
  -- What was done, as `subject.verb`: 'account.suspend'.
  action            text NOT NULL,
  subject_type      text NOT NULL,
  subject_id        text NOT NULL,
  -- What changed, as it was and as it is. Never a secret.
  before            json,
  after             json,
  request_id        text,
  -- 'begun': an act of its own tells how it ended. 'refused': nothing has changed.
  outcome           text NOT NULL DEFAULT 'done' CHECK (outcome IN ('begun', 'done', 'refused'))
);
-- One for each filter of the list, in the order of the list.
CREATE INDEX audit_newest ON audit (at, id);
CREATE INDEX audit_actor ON audit (actor, at, id);
CREATE INDEX audit_actor_account ON audit (actor_account_id, at, id);
CREATE INDEX audit_action ON audit (action, at, id);
CREATE INDEX audit_subject ON audit (subject_id, at, id);
