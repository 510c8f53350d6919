-- Quality compares latencies of succeeded calls: a caller who sends mistakes, or leaves, must not make a service look fast or slow.
SET LOCAL lock_timeout = '5s';

-- The sum of the latencies of succeeded calls. 0 in rows that were made without the column: then it is not known.
ALTER TABLE key_hours ADD COLUMN succeeded_us bigint NOT NULL DEFAULT 0;
