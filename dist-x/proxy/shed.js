import { ERRORS } from '../errors.js';
import { commonHeaderLines, errorHeaderLines, unavailableError, unknownRate } from '../gate/answer.js';
import { uuidv7 } from '../platform/ids.js';
const ERROR = unavailableError();
const LINES = `${errorHeaderLines(ERROR)}\r\nX-ACF-Amount: 0`;
const BODY = JSON.stringify(ERROR.body());
/**
 * Answers a call that is shed, at once and from memory: Redis and Postgres are not asked. The call is not admitted, not
 * charged, and not counted against a rate limit. Only the header lines that differ between such answers are made per call; the
 * rest is in the constants above.
 */
export function shedCall(gate, counters, head, caller) {
    const rate = unknownRate(gate.limitOf(gate.identifyKnown(head.authorization)));
    counters.refused.set(ERROR.code, (counters.refused.get(ERROR.code) ?? 0) + 1);
    caller.respond(ERRORS.unavailable.status, commonHeaderLines(rate, uuidv7()) + LINES, BODY);
}
//# sourceMappingURL=shed.js.map