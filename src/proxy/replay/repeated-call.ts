import type { Claim } from '../../admission/claims.ts';
import type { RateState } from '../../admission/codes.ts';
import { ApiError, tooLargeError, unavailableError } from '../../errors.ts';
import { commonHeaderLines } from '../../gate/answer.ts';
import type { CallerEvents, RequestHead } from '../../gate/caller-io.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import type { Answer } from '../../replay/answer-text.ts';
import type { ChargedCall } from '../../replay/answers.ts';
import { BodyDigest, claimOf, readIdempotencyKey } from '../../replay/idempotency-key.ts';
import type { ArrivedCall } from '../stages/arrived-call.ts';
import { answerNotKept, callInProgress, idempotencyMismatch } from './refusals.ts';

/**
 * A call with the idempotency key of another one, which was charged. Its request body is read to its end and hashed, never buffered. If it
 * is the same request, the caller gets the answer to the first one:
 *
 *   reading the body ──┐
 *                      ├──► answered: the first answer, or why there is none
 *   reading Redis ─────┘
 *
 * Nothing is charged, and the service hears nothing of it.
 *
 * Tested by test/integration/replay.test.ts.
 */
export class RepeatedCall implements CallerEvents {
  readonly #call: ArrivedCall;
  readonly #claim: Claim;
  readonly #rate: RateState;
  readonly #body = new BodyDigest();
  #bytes = 0;
  /** Null until the request body has come whole. */
  #digest: string | null = null;
  /** Null until Redis has told it. */
  #first: ChargedCall | null = null;
  #isOver = false;

  constructor(call: ArrivedCall, claim: Claim, rate: RateState) {
    this.#call = call;
    this.#claim = claim;
    this.#rate = rate;
    call.rate = rate;
  }

  /** @param message  the whole request body, if it has been read */
  start(accountId: string, message: Buffer | null): void {
    this.#readBody(message);
    this.#call.options.answers.find(accountId, this.#claim.name).then(
      (first) => this.#found(first),
      (error: unknown) => this.#refuse(unavailableError(error)),
    );
  }

  /** The same, where Redis has told the first call already. */
  startWith(first: ChargedCall, message: Buffer | null): void {
    this.#readBody(message);
    this.#found(first);
  }

  #readBody(message: Buffer | null): void {
    const { head, caller } = this.#call;
    if (message !== null) this.onCallerBody(message, true);
    else if (head.bodyLength === 0) this.#digest = this.#body.end();
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

  /** All of the answer has been handed over at once. */
  onCallerWritable(): void {}

  #found(first: ChargedCall | null): void {
    if (first === null) this.#refuse(callInProgress());
    else if (first.target !== '' && first.target !== this.#claim.target) this.#refuse(idempotencyMismatch());
    else if (first.bodyDigest === null) this.#refuse(answerNotKept());
    else {
      this.#first = first;
      this.#answer();
    }
  }

  /** Answers, once both the body and the first call are known. */
  #answer(): void {
    const first = this.#first;
    if (this.#isOver || first === null || this.#digest === null) return;
    if (first.bodyDigest !== this.#digest) this.#refuse(idempotencyMismatch());
    else if (first.answer === null) this.#refuse(answerNotKept());
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
 * Refuses a call that did not get as far as its admission, unless it repeats a call that was charged: then the service that is paused,
 * silent or more expensive by now changes nothing, because the answer is there.
 *
 * @param key  of the caller; null if it has no valid one
 * @param message  the whole request body, if it has been read
 */
export function refuseUnlessRepeated(
  call: ArrivedCall,
  key: KeyRecord | null,
  error: unknown,
  message: Buffer | null = null,
): void {
  const claim = key === null || call.head.fault !== null ? null : claimIn(call.head, key.keyId);
  if (key === null || claim === null) {
    call.refuse(key, error);
    return;
  }
  const { gate, answers } = call.options;
  gate.take(key, ({ rate, refusal }) => {
    if (refusal !== null) {
      call.answer(refusal, rate);
      return;
    }
    answers.find(key.accountId, claim.name).then(
      (first) => {
        if (first === null || first.target !== claim.target) call.fail(error, rate);
        else new RepeatedCall(call, claim, rate).startWith(first, message);
      },
      () => call.fail(error, rate),
    );
  });
}

function claimIn(head: RequestHead, keyId: string): Claim | null {
  const at = head.headers.findIndex((name, i) => i % 2 === 0 && name === 'idempotency-key');
  const key = at < 0 ? null : readIdempotencyKey(head.headers[at + 1] as string);
  return key === null ? null : claimOf(keyId, key, head);
}
