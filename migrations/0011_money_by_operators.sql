-- Money that operators move: payouts to providers, and debits of buyers' wallets. Amounts are micro-USD.
--
-- The locks of this file are short. If a long query uses one of the tables, it fails after 5 s and must be tried again.
SET LOCAL lock_timeout = '5s';

-- NOT VALID: the rows that exist satisfy the narrower check, and reading all of them would hold the lock meanwhile.
ALTER TABLE journal
  DROP CONSTRAINT journal_kind_check,
  ADD CONSTRAINT journal_kind_check CHECK (kind IN ('usage', 'credit', 'payout', 'repair', 'debit')) NOT VALID;

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

-- Money taken out of a wallet by an operator. The row is written before the wallet in Redis decides (docs/decisions/0037):
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
  PRIMARY KEY (account_id, seq)
);
-- A debit that was refused took nothing, so its reference may be tried again.
CREATE UNIQUE INDEX debits_reference ON debits (reference) WHERE state <> 'refused';
-- One debit of an account is decided at a time.
CREATE UNIQUE INDEX debits_begun ON debits (account_id) WHERE state = 'begun';
CREATE INDEX debits_time ON debits (ended_at, journal_id) WHERE state = 'taken';
CREATE INDEX debits_account ON debits (account_id, ended_at, journal_id) WHERE state = 'taken';

-- Lists and statements read credits by time.
CREATE INDEX credits_time ON credits (created_at, journal_id);
CREATE INDEX credits_account_time ON credits (account_id, created_at, journal_id);
