-- How many accounts each public address has opened today without a key, so that all gateways together keep to the limit. Rows of
-- earlier days are deleted when the next account is opened.
CREATE TABLE account_openings (
  day     date    NOT NULL,
  -- An IPv4 address, or the /64 network of an IPv6 address.
  address text    NOT NULL,
  opened  integer NOT NULL,
  PRIMARY KEY (day, address)
);
