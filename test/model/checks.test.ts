// Each check of the rule, switched off, breaks a promise: so the model sees what the check is there for.

import { describe, expect, it } from 'vitest';
import { CHECKS, type Check } from './checks.ts';
import { compileModel } from './compiled.ts';

const { explore, rulesOf, SCENARIOS } = await compileModel();

/** The scenario that shows it. Null: at these bounds no scenario does; the decision page says why the check stays or goes. */
const SHOWN_BY: Record<Check, keyof typeof SCENARIOS | null> = {
  trimMark: 'postgres',
  pageThere: 'free',
  pageBegins: 'postgres',
  olderPostgres: 'postgres',
  dataId: 'wiped',
  replicationId: 'swapped',
  token: 'postgres',
  acceptMark: 'postgres',
  fillMark: 'both',
  fillDeadline: 'wiped',
  loadLock: 'wiped',
  doubtOnly: 'late',
  rejected: 'rejected',
  ahead: 'movements',
  staysInDoubt: 'movements',
  leaveOutDoubt: 'wiped',
  leaveOutTwo: 'rejected',
  leaveOutPosted: 'rejected',
  began: null,
  ticket: 'wiped',
  repairMark: 'twice',
  repairPeriod: 'budget',
  repairSpent: 'budget',
  holdPeriod: 'budget',
  laterPeriod: 'budget',
  loadedSpent: 'budget',
  refundPeriod: 'refunds',
  refundMissing: 'refunds',
  refundTicket: 'refunds',
  repairDeadline: null,
  storedHolds: 'wiped',
  endsOnce: 'torn',
  sweepWaits: 'wiped',
  dropMark: null,
  dropAhead: null,
  dropIdle: 'wiped',
  dropDebit: null,
  claimed: 'keyed',
  claimAtOnce: 'keyed',
  claimOver: 'keyed',
  claimUnknown: 'keyed',
  claimFreed: 'keyed',
  claimOwner: 'keyed',
  warning: 'postgres',
};

/** That Postgres refuses an event is a fault, too. */
const NEED_NO_FAULT: ReadonlySet<Check> = new Set([
  'leaveOutTwo',
  'leaveOutPosted',
  'rejected',
  'holdPeriod',
  'refundPeriod',
  'refundMissing',
  'claimed',
  'claimAtOnce',
  'claimFreed',
] as const);

describe('each check is necessary: a promise breaks when the check is switched off', () => {
  for (const [check, scenario] of Object.entries(SHOWN_BY) as [Check, keyof typeof SCENARIOS | null][]) {
    if (scenario === null) continue;
    it(`${CHECKS[check]}`, () => {
      const { counterexample } = explore(rulesOf(SCENARIOS[scenario], check), 500_000);
      expect(counterexample?.promise).toBeTypeOf('string');
      const isFault = (line: string): boolean => line.startsWith('FAULT') || NEED_NO_FAULT.has(check);
      expect(counterexample?.history.some(isFault)).toBe(true);
    });
  }
});

describe('a wrong repair is detected', () => {
  for (const scenario of ['swapped', 'postgres', 'twice'] as const) {
    it(`that takes too much: ${SCENARIOS[scenario].name}`, () => {
      const { counterexample } = explore({ ...rulesOf(SCENARIOS[scenario]), repairsTooMuch: true }, 500_000);
      expect(counterexample?.promise).toBe('a wallet was repaired wrongly');
    });
  }

  it('of a tampered wallet', () => {
    const { counterexample } = explore(rulesOf(SCENARIOS.tampered, 'doubtOnly'), 500_000);
    expect(counterexample?.promise).toBe('a drift was repaired that cannot be Redis’s');
  });
});
