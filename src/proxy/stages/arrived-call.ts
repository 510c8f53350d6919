import type { RateState } from '../../admission/codes.ts';
import { ApiError } from '../../errors.ts';
import { commonHeaderLines, renderError } from '../../gate/answer.ts';
import type { CallerStream, RequestHead } from '../../gate/caller-io.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import { uuidv7 } from '../../platform/ids.ts';
import { describeCall } from '../access.ts';
import { CallClock } from '../call-clock.ts';
import type { ExchangeOptions } from '../exchange-options.ts';

/** A call whose request head has arrived: what all later stages know about it, and how it is answered if it is not admitted. */
export class ArrivedCall {
  readonly options: ExchangeOptions;
  readonly head: RequestHead;
  readonly caller: CallerStream;
  readonly usageId = uuidv7();
  readonly clock: CallClock;
  /** The rate limit after the call was admitted or refused; null before that. Callers in this process read it. */
  rate: RateState | null = null;
  /** Whether the call was settled by a refund. Callers in this process read it; others learn it from the response. */
  isRefunded = false;
  /** The most that the service may charge for a call priced by use; null at a fixed price. Callers in this process read it. */
  authorizedMicros: number | null = null;
  /** What the call cost; null until it is settled. Callers in this process read it. */
  chargedMicros: number | null = null;

  constructor(options: ExchangeOptions, head: RequestHead, caller: CallerStream) {
    this.options = options;
    this.clock = new CallClock(options.counters.timings);
    this.head = head;
    this.caller = caller;
    describeCall(caller, head, this.usageId);
  }

  /**
   * Answers a call that is not admitted, and takes a token from the caller's rate limit.
   *
   * @param key  of the caller; null if it has no valid one
   */
  refuse(key: KeyRecord | null, error: unknown): void {
    const who = key ?? this.caller.address;
    // No key, and the caller left before its address was read: there is nobody to answer, or to count the request against.
    if (who === null) return;
    this.options.gate.take(who, ({ rate, refusal }) => {
      if (refusal !== null) this.answer(refusal, rate);
      else this.fail(error, rate);
    });
  }

  /** Answers a call that is not admitted, without taking a token. An error that is not for callers becomes `internal`. */
  fail(error: unknown, rate: RateState): void {
    if (error instanceof ApiError) {
      this.answer(error, rate);
      return;
    }
    this.options.log.error({ err: error, request_id: this.usageId }, 'call failed before admission');
    this.answer(new ApiError('internal'), rate);
  }

  answer(error: ApiError, rate: RateState): void {
    this.rate = rate;
    const { refused } = this.options.counters;
    refused.set(error.code, (refused.get(error.code) ?? 0) + 1);
    const { lines, body } = renderError(error, commonHeaderLines(rate, this.usageId));
    this.caller.respond(error.status, lines, body);
  }
}
