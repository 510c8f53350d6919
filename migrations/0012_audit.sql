-- What operators do, and what their pages need. Nothing is rewritten. The indexes are on tables that calls never write, and take
-- about a second for a million rows; while they are made, accounts, keys and listings wait. If a long transaction uses one of the
-- tables, the migration fails after 5 s and must be tried again; otherwise every change would wait behind it.
SET LOCAL lock_timeout = '5s';

-- Every act of an operator, stored by the transaction that carries it out. Rows are never changed, except that closing an account
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
  request_id        text
);
-- One for each filter of the list, in the order of the list.
CREATE INDEX audit_newest ON audit (at, id);
CREATE INDEX audit_actor ON audit (actor, at, id);
CREATE INDEX audit_actor_account ON audit (actor_account_id, at, id);
CREATE INDEX audit_action ON audit (action, at, id);
CREATE INDEX audit_subject ON audit (subject_id, at, id);

-- An account can be closed. NOT VALID, because every row passed the stricter check before: there is nothing to read again.
ALTER TABLE accounts DROP CONSTRAINT accounts_status_check;
ALTER TABLE accounts ADD CONSTRAINT accounts_status_check CHECK (status IN ('active', 'suspended', 'closed')) NOT VALID;
ALTER TABLE accounts ADD COLUMN closed_at timestamptz;

-- The operators' lists, newest first. The ids of accounts and listings are made of the time; those of keys are not.
CREATE INDEX accounts_status ON accounts (status, id);
CREATE INDEX api_keys_newest ON api_keys (created_at, key_id);
CREATE INDEX api_keys_role ON api_keys (role, created_at, key_id);
CREATE INDEX api_keys_status ON api_keys (status, created_at, key_id);
CREATE INDEX api_keys_account_newest ON api_keys (account_id, created_at, key_id);
CREATE INDEX services_status ON services (status, id);
CREATE INDEX services_category ON services (category, id);
CREATE INDEX services_provider_newest ON services (provider_id, id);
