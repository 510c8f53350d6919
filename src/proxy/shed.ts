import { ERRORS } from '../errors.ts';
import { commonHeaderLines, errorHeaderLines, unavailableError, unknownRate } from '../gate/answer.ts';
import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { Gate } from '../gate/gate.ts';
import { uuidv7 } from '../platform/ids.ts';
import { describeCall, describeCaller } from './access.ts';
import type { ExchangeCounters } from './exchange-options.ts';

const ERROR = unavailableError();
const LINES = `${errorHeaderLines(ERROR)}\r\nX-ACF-Amount: 0`;
const BODY = JSON.stringify(ERROR.body());

/**
 * Answers a call that is shed, at once and from memory: Redis and Postgres are not asked. The call is not admitted, not charged,
 * and not counted against a rate limit. Only the header lines that differ between these answers are made per call; the rest is in
 * the constants above.
 */
export function shedCall(gate: Gate, counters: ExchangeCounters, head: RequestHead, caller: CallerStream): void {
  const key = gate.identifyKnown(head.authorization);
  const rate = unknownRate(gate.limitOf(key));
  const usageId = uuidv7();
  describeCall(caller, head, usageId);
  describeCaller(caller, key);
  counters.refused.set(ERROR.code, (counters.refused.get(ERROR.code) ?? 0) + 1);
  caller.respond(ERRORS.unavailable.status, commonHeaderLines(rate, usageId) + LINES, BODY);
}
