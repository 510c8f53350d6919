import { expect, it } from 'vitest';
import { Buyer } from '../../../src/admission/buyer.ts';
import type { CallTerms } from '../../../src/admission/call-terms.ts';
import type { Admitted } from '../../../src/admission/commands.ts';
import type { CallerStream, RequestHead } from '../../../src/gate/caller-io.ts';
import { type ExchangeOptions, newCounters } from '../../../src/proxy/exchange-options.ts';
import { AdmittedCall } from '../../../src/proxy/stages/admitted-call.ts';
import { ArrivedCall } from '../../../src/proxy/stages/arrived-call.ts';
import { NO_OWNER } from '../../support/store.ts';

const rate = { limit: 60, tokens: 59 * 60_000, remaining: 59, resetSeconds: 1, retryAfterSeconds: 0 };
const admitted: Admitted = {
  outcome: 'admitted',
  rate,
  amountMicros: 5,
  authorizedMicros: null,
  freeTier: false,
  freeLeft: null,
  balanceMicros: 10,
  owner: NO_OWNER,
};

it('an admitted call is settled exactly once: a second end changes nothing, and is an error', () => {
  const settled: unknown[] = [];
  const options = {
    admission: { settle: (id: string, _buyer: Buyer, refund: boolean) => settled.push([id, refund]) },
    counters: newCounters(),
  } as unknown as ExchangeOptions;
  const arrived = new ArrivedCall(options, {} as RequestHead, {} as CallerStream);
  const call = new AdmittedCall(arrived, new Buyer('key', 'account', '', ''), admitted, {} as CallTerms);
  expect(arrived.rate).toBe(rate);
  expect(options.counters).toMatchObject({ admitted: 1, open: 1 });
  call.settle('caller_gone', 499, 0, 0);
  expect(() => call.settle(null, 200, 0, 0)).toThrow('an admitted call is settled exactly once');
  expect(settled).toEqual([[arrived.usageId, true]]);
  expect(arrived.isRefunded).toBe(true);
  const { open, completed, refunded } = options.counters;
  expect([open, completed, refunded]).toEqual([0, 0, new Map([['caller_gone', 1]])]);
});
