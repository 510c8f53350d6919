import type { Claim } from '../../admission/claims.ts';
import type { RateState } from '../../admission/codes.ts';
import { ApiError, tooLargeError, unavailableError } from '../../errors.ts';
import { commonHeaderLines } from '../../gate/answer.ts';
import type { CallerEvents } from '../../gate/caller-io.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import type { Answer } from '../../replay/answer-text.ts';
import type { ChargedCall, FirstCall } from '../../replay/answers.ts';
import { BodyDigest, claimOf, idempotencyKeyIn } from '../../replay/idempotency-key.ts';
import type { ArrivedCall } from '../stages/arrived-call.ts';
import { answerNotKept, callInProgress, idempotencyMismatch } from './refusals.ts';

/**
 * A call with the idempotency key of an earlier call, which was charged. Its request body is read to its end and hashed, never
 * buffered. If it is the same request, the caller gets the answer to the first one:
 *
 *   reading the body ──┐
 *                      ├──► answered: the first answer, or why there is none
 *   reading Redis ─────┘
 *
 * Nothing is charged, and the service does not learn of it.
 *
 * Tested by test/integration/replay.test.ts.
 */
export class RepeatedCall implements CallerEvents {
  readonly #call: ArrivedCall;
  readonly #claim: Claim;
  readonly #rate: RateState;
  readonly #body = new BodyDigest();
  #bytes = 0;
  /** Null until the whole request body has arrived. */
  #digest: string | null = null;
  /** Null until Redis has answered. */
  #first: ChargedCall | null = null;
  #isOver = false;

  constructor(call: ArrivedCall, claim: Claim, rate: RateState) {
    this.#call = call;
    this.#claim = claim;
    this.#rate = rate;
    call.rate = rate;
  }

  /** @param bodyDigest  of the request body, if it has been read */
  start(accountId: string, bodyDigest: string | null): void {
    this.#readBody(bodyDigest);
    this.#call.options.answers.find(accountId, this.#claim.name).then(
      (first) => this.#found(first),
      (error: unknown) => this.#refuse(unavailableError(error)),
    );
  }

  /** The same, if Redis has already named the first call. */
  startWith(first: ChargedCall, bodyDigest: string | null): void {
    this.#readBody(bodyDigest);
    this.#found(first);
  }

  #readBody(bodyDigest: string | null): void {
    const { head, caller } = this.#call;
    this.#digest = bodyDigest ?? (head.bodyLength === 0 ? BodyDigest.EMPTY : null);
    caller.attach(this);
  }

  onCallerBody(chunk: Uint8Array, last: boolean): void {
    if (this.#isOver || this.#digest !== null) return;
    const { maxRequestBodyBytes } = this.#call.options;
    this.#bytes += chunk.length;
    if (this.#bytes > maxRequestBodyBytes) {
      this.#refuse(tooLargeError(maxRequestBodyBytes));
      return;
    }
    this.#body.add(chunk);
    if (!last) return;
    this.#digest = this.#body.end();
    this.#answer();
  }

  onCallerTooSlow(): void {
    this.#refuse(new ApiError('body_too_slow'));
  }

  onCallerGone(): void {
    this.#isOver = true;
  }

  /** The whole answer has been sent at once. */
  onCallerWritable(): void {}

  /** @param first null: it has released its claim since, so the next repeat becomes a call of its own */
  #found(first: FirstCall | null): void {
    if (first === null || first.isUnderWay) this.#refuse(callInProgress());
    else if (first.target !== '' && first.target !== this.#claim.target) this.#refuse(idempotencyMismatch());
    else if (first.bodyDigest === null) this.#refuse(answerNotKept(first));
    else {
      this.#first = first;
      this.#answer();
    }
  }

  /** Answers once both the body and the first call are known. */
  #answer(): void {
    const first = this.#first;
    if (this.#isOver || first === null || this.#digest === null) return;
    if (first.bodyDigest !== this.#digest) this.#refuse(idempotencyMismatch());
    else if (first.answer === null) this.#refuse(answerNotKept(first));
    else this.#replay(first.usageId, first.answer);
  }

  #replay(firstUsageId: string, { status, lines, isAscii, contentLength, hasBody, body }: Answer): void {
    this.#isOver = true;
    const { caller, usageId, clock, options } = this.#call;
    options.counters.replayed++;
    options.replays.count(firstUsageId);
    const ours = commonHeaderLines(this.#rate, usageId) + clock.headerLines();
    caller.begin(status, `${ours}\r\nIdempotent-Replayed: true${lines}`, isAscii, contentLength, hasBody);
    if (body.length > 0) caller.write(body);
    caller.end();
  }

  #refuse(error: ApiError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#call.answer(error, this.#rate);
  }
}

/**
 * Refuses a call before its admission, unless it repeats another one. It does not matter then that the service is paused, silent or
 * more expensive by now: the answer is there, or on its way.
 *
 * @param key  of the caller; null if it has no valid one
 * @param bodyDigest  of the request body, if it has been read
 */
export function refuseUnlessRepeated(
  call: ArrivedCall,
  key: KeyRecord | null,
  error: unknown,
  bodyDigest: string | null = null,
): void {
  const { head } = call;
  const idempotencyKey = head.fault !== null ? null : idempotencyKeyIn(head.headers);
  if (key === null || idempotencyKey === null) {
    call.refuse(key, error);
    return;
  }
  const claim = claimOf(key.keyId, idempotencyKey, head);
  const { gate, answers } = call.options;
  gate.take(key, ({ rate, refusal }) => {
    if (refusal !== null) {
      call.answer(refusal, rate);
      return;
    }
    answers.find(key.accountId, claim.name).then(
      (first) => {
        if (first === null || first.target !== claim.target) call.fail(error, rate);
        else if (first.isUnderWay) call.answer(callInProgress(), rate);
        else new RepeatedCall(call, claim, rate).startWith(first, bodyDigest);
      },
      () => call.fail(error, rate),
    );
  });
}
