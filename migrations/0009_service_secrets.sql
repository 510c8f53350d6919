-- What a listing adds to the calls that reach its service. Secrets are encrypted with SECRETS_KEY (src/secrets/).
ALTER TABLE services
  -- JSON: [[header name, sealed value], …]; null if the gateway adds none.
  ADD COLUMN upstream_headers text,
  -- JSON: [{"keyid", "secret": sealed, "until"?: milliseconds since the epoch}, …], newest first; null if calls are not signed.
  ADD COLUMN signing_keys     text,
  -- Names of credential headers that the service asks callers for, joined by commas; null if it asks for none.
  ADD COLUMN forward_headers  text;

-- For the reading that encrypts old values with a new key. Few listings have secrets.
CREATE INDEX services_with_secrets ON services (id) WHERE upstream_headers IS NOT NULL OR signing_keys IS NOT NULL;
