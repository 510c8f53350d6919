-- How a listing is called. `operations` is what its provider wrote (an array of JSON objects); buyers read it one listing at a time.
-- `operation_terms` is what calls need of it, in short: [[method, path template, price], …], or [[tool, price], …] of an MCP server,
-- with the price in micro-USD, or null for the listing's. Every gateway keeps it in memory for every listing.
ALTER TABLE services
  ADD COLUMN protocol            text NOT NULL DEFAULT 'http' CHECK (protocol IN ('http', 'mcp')),
  -- The longest silence within a response, in seconds; null: the gateway's IDLE_BODY_SECONDS.
  ADD COLUMN idle_seconds        int CHECK (idle_seconds BETWEEN 1 AND 3600),
  -- Calls that match no operation are refused.
  ADD COLUMN only_operations     boolean NOT NULL DEFAULT false,
  ADD COLUMN operations          json,
  ADD COLUMN operation_terms     text,
  ADD COLUMN max_operation_price bigint,
  -- If other calls are served at the listing's price, some spelling of a path might reach a dearer operation at that price.
  ADD CONSTRAINT services_dear_operations
    CHECK (only_operations OR max_operation_price IS NULL OR max_operation_price <= price),
  ADD CONSTRAINT services_only_operations CHECK (NOT only_operations OR operations IS NOT NULL);
