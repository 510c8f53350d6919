/** Finds the rows of `refund_hours` that are not what `refunds` makes of them. */
export const WRONG_REFUND_SUMS = `
  WITH made AS (
    SELECT key_id, date_trunc('hour', call_at, 'UTC') AS hour, service_id, count(*) AS refunds, sum(amount) AS amount, sum(fee) AS fees,
           count(*) FILTER (WHERE whole) AS whole, count(*) FILTER (WHERE whole AND succeeded) AS whole_succeeded
    FROM refunds GROUP BY 1, 2, 3)
  SELECT * FROM made FULL JOIN refund_hours h USING (key_id, hour, service_id)
  WHERE (made.refunds, made.amount, made.fees, made.whole, made.whole_succeeded)
    IS DISTINCT FROM (h.refunds, h.amount, h.fees, h.whole, h.whole_succeeded)`;
