-- Payouts of a provider are few among millions of flushes of usage; without this, finding them reads them all.
CREATE INDEX journal_payouts ON journal (id) WHERE kind = 'payout';
