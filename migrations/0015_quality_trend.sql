-- The quality less that of seven days before, with one decimal; null when too little was known then (docs/quality.md). An older writer
-- leaves it as it is.
ALTER TABLE service_quality ADD COLUMN trend real;
