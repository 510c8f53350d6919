-- The installation's id is stored in Redis too. A Redis with another id is refused before anything is read or changed there. The id
-- is computed from the secret, so that a database copied before this migration gets the same id as its original.
ALTER TABLE installation ADD COLUMN id uuid;
UPDATE installation SET id = md5('installation:' || pseudonym_secret)::uuid;
ALTER TABLE installation ALTER COLUMN id SET NOT NULL;

-- The catalogs look for the suspended accounts every half minute; these are a few among many.
CREATE INDEX accounts_suspended ON accounts (id) WHERE status = 'suspended';
