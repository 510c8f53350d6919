-- What a provider announces, and what is found out about a service without calls of buyers.

-- Terms by which a call may cost more than by the row's own: they count from `next_from`. After that time the row keeps them here
-- until its terms change again, and whoever reads it takes these. All are null if nothing is announced.
ALTER TABLE services
  ADD COLUMN next_from                timestamptz,
  ADD COLUMN next_price               bigint,
  ADD COLUMN next_free_calls          int,
  ADD COLUMN next_only_operations     boolean,
  ADD COLUMN next_operations          json,
  ADD COLUMN next_operation_terms     text,
  ADD COLUMN next_max_operation_price bigint,
  -- A page about the service, for people.
  ADD COLUMN docs_url                 text,
  -- The path below the endpoint that is asked every minute whether the service is up; null: it is not asked.
  ADD COLUMN health_path              text,
  -- The rules that the row's own terms follow.
  ADD CONSTRAINT services_next_terms CHECK (next_from IS NULL OR (
    next_price >= 0 AND next_free_calls >= 0 AND next_only_operations IS NOT NULL)),
  ADD CONSTRAINT services_next_dear_operations CHECK (
    next_only_operations OR next_max_operation_price IS NULL OR next_max_operation_price <= next_price),
  ADD CONSTRAINT services_next_only_operations CHECK (NOT next_only_operations OR next_operations IS NOT NULL);

CREATE INDEX services_watched ON services (id) WHERE health_path IS NOT NULL;

-- What the gateway found when it asked. Not in `services`: a change there makes every gateway read the catalog again.
CREATE TABLE service_watch (
  service_id     uuid PRIMARY KEY,
  -- Whether the endpoint gave any HTTP answer when it was asked once. It says nothing about another endpoint than this.
  endpoint       text,
  reachable      boolean,
  checked_at     timestamptz,
  -- Whoever moves this time ahead asks the health path: so one process does.
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
