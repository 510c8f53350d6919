import type { Fault, Scenario } from './checks.ts';

const of = (...faults: Fault[]): ReadonlySet<Fault> => new Set(faults);

/** Small enough to be a part of `npm test` together. Each asks for other faults, so that histories of two stay few. */
export const SCENARIOS = {
  crashes: { name: 'crashes, two calls', calls: 2, faults: of('cut'), maxFaults: 1 },
  swapped: {
    name: 'a master that follows and leads again',
    calls: 1,
    faults: of('cut', 'swap', 'tamper'),
    maxFaults: 2,
  },
  masters: { name: 'deposed masters', calls: 1, faults: of('failover', 'oldBack'), maxFaults: 2 },
  wiped: {
    name: 'FLUSHALL, and what comes late',
    calls: 1,
    leavesOut: true,
    faults: of('cut', 'flushall', 'writer', 'late'),
    maxFaults: 2,
  },
  tampered: { name: 'a bug or tampering', calls: 1, faults: of('cut', 'tamper', 'writer', 'flushall'), maxFaults: 2 },
  late: { name: 'a late trim, and tampering', calls: 2, faults: of('tamper', 'writer'), maxFaults: 2 },
  rejected: { name: 'a rejected event', calls: 2, rejects: true, leavesOut: true, faults: of('cut'), maxFaults: 1 },
  budget: { name: 'a budget with two periods', calls: 2, budget: true, faults: of('cut'), maxFaults: 1 },
  refunds: {
    name: 'a refund of a call with a budget',
    calls: 2,
    budget: true,
    refund: true,
    faults: of('cut'),
    maxFaults: 1,
  },
  free: { name: 'a free call', calls: 2, free: true, faults: of('cut'), maxFaults: 1 },
  byUse: { name: 'a call priced by use', calls: 2, byUse: true, faults: of('cut', 'flushall'), maxFaults: 1 },
  money: {
    name: 'credits and debits',
    calls: 1,
    credit: true,
    debit: true,
    faults: of('cut', 'late', 'flushall'),
    maxFaults: 1,
  },
  leftOut: {
    name: 'credits and debits, and comparisons that are left out',
    calls: 1,
    leavesOut: true,
    credit: true,
    debit: true,
    faults: of('late'),
    maxFaults: 1,
  },
  postgres: { name: 'an older Postgres', calls: 2, faults: of('rewind', 'deposed', 'warned'), maxFaults: 1 },
  undone: {
    name: 'an older Postgres, and a refund',
    calls: 1,
    budget: true,
    refund: true,
    faults: of('rewind'),
    maxFaults: 1,
  },
  twice: { name: 'Postgres goes back again', calls: 2, faults: of('rewind'), maxFaults: 2 },
  both: {
    name: 'an older Postgres and an older Redis',
    calls: 1,
    faults: of('rewind', 'deposed', 'cut', 'late', 'flushall'),
    maxFaults: 2,
  },
  movements: {
    name: 'an older Postgres, credits and debits',
    calls: 1,
    credit: true,
    debit: true,
    faults: of('rewind', 'warned'),
    maxFaults: 1,
  },
} as const satisfies Record<string, Scenario>;
