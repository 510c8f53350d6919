-- Stands in Redis too: a Redis of another installation has another id, and is refused before anything is read or changed there.
ALTER TABLE installation ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();
