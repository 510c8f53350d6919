-- Stands in Redis too: a Redis of another installation has another id, and is refused before anything is read or changed there.
-- Made of the secret, so that a copy from before this migration gets the same one again.
ALTER TABLE installation ADD COLUMN id uuid;
UPDATE installation SET id = md5('installation:' || pseudonym_secret)::uuid;
ALTER TABLE installation ALTER COLUMN id SET NOT NULL;

-- The catalogs look for suspended accounts every half minute: few of many.
CREATE INDEX accounts_suspended ON accounts (id) WHERE status = 'suspended';
