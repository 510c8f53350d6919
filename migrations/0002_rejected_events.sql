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
