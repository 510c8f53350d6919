-- The quality of each service whose calls have been judged, and what it was made from (docs/quality.md). It can be computed again from
-- key_hours at any time. Services without a row have the neutral quality.
CREATE TABLE service_quality (
  service_id    uuid PRIMARY KEY,
  -- 0 to 100, with one decimal.
  quality       real NOT NULL CHECK (quality BETWEEN 0 AND 100),
  -- How many calls' worth of evidence there is, after ageing and after the diminishing weight of each buyer.
  evidence      real NOT NULL,
  -- The weighted share of calls that succeeded, without the prior.
  success_rate  real NOT NULL CHECK (success_rate BETWEEN 0 AND 1),
  -- The typical latency in microseconds; null when no latency is known.
  latency_us    bigint,
  buyers        int NOT NULL,
  -- When `quality` last changed. The gateways read what has changed since they last looked.
  changed_at    timestamptz NOT NULL,
  computed_at   timestamptz NOT NULL
);
CREATE INDEX service_quality_changed ON service_quality (changed_at);
