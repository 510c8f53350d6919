-- How the data in Redis are laid out: the number of shards, and which hash tags their keys have. Fixed for the life of an
-- installation, because with another layout most wallets would be looked for where they are not. NULL until the first start of
-- a version that knows these columns; the number of shards stood in Redis before, and still does.
ALTER TABLE installation
  ADD COLUMN redis_shards int CHECK (redis_shards > 0),
  ADD COLUMN redis_layout text CHECK (redis_layout IN ('single', 'cluster'));

-- Earlier versions knew no cluster. So an installation that has been in use has its data in a single Redis.
UPDATE installation SET redis_layout = 'single' WHERE EXISTS (SELECT FROM api_keys);
