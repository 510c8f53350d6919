import type { Claim, EndedClaim } from '../../admission/claims.ts';
import { BodyBytes } from '../../gate/body-bytes.ts';
import type { Answer } from '../../replay/answer-text.ts';
import type { Answers, NotKept } from '../../replay/answers.ts';
import { BodyDigest } from '../../replay/idempotency-key.ts';
import type { ResponseHead } from '../../upstream/index.ts';
import { EventBoundary } from '../event-boundary.ts';

/** Maximum characters of the header lines of an answer that is kept. */
const MAX_LINES = 16_384;

type Head = Omit<Answer, 'body'>;

/**
 * The additional parts of an admitted call with an idempotency key: the digest of its request body, made as the body arrives, and,
 * as long as the answer may be kept, a copy of it, made as the caller gets it. An answer that begins before the whole request has
 * arrived is not kept, because the request to which it belongs is not known.
 *
 * Tested by test/integration/replay.test.ts.
 */
export class KeyedCall {
  readonly #name: string;
  readonly #answers: Answers;
  readonly #body = new BodyDigest();
  /** The digest of the request body. Null until the whole body has arrived. */
  #bodyDigest: string | null;
  /** Null: the service has not answered, or its answer is not kept. */
  #head: Head | null = null;
  readonly #bytes: BodyBytes;
  #isGivenUp = false;
  #isKept = false;

  /** @param bodyDigest digest of the request body; null: the body has not arrived yet */
  constructor({ name }: Claim, answers: Answers, bodyDigest: string | null) {
    this.#name = name;
    this.#answers = answers;
    this.#bodyDigest = bodyDigest;
    this.#bytes = new BodyBytes(answers.maxAnswerBytes);
  }

  onRequestBody(chunk: Uint8Array, last: boolean): void {
    if (this.#bodyDigest !== null) return;
    this.#body.add(chunk);
    if (last) this.#bodyDigest = this.#body.end();
  }

  /** Whether the answer, or the part that has arrived, can still be kept. */
  get isCapturing(): boolean {
    return !this.#isGivenUp && this.#bodyDigest !== null && this.#answers.maxAnswerBytes > 0;
  }

  /** @param serviceLines  the header lines of the service, as the caller gets them */
  onHead({ status, isAscii, contentLength, hasBody }: ResponseHead, serviceLines: string): void {
    if (this.#answers.maxAnswerBytes === 0) this.#isGivenUp = true;
    else if (this.#bodyDigest === null) this.#giveUp('early');
    else if (contentLength > this.#answers.maxAnswerBytes && hasBody) this.#giveUp('too_long');
    else if (serviceLines.length > MAX_LINES) this.#giveUp('too_long');
    else this.#head = { status, lines: serviceLines, isAscii, contentLength, hasBody };
  }

  /** A piece of the answer's body. */
  onAnswer(chunk: Uint8Array): void {
    if (this.#head === null) return;
    const bytes = this.#bytes;
    if (bytes.length + chunk.length > this.#answers.maxAnswerBytes) this.#giveUp('too_long');
    else if (!this.#answers.capture(bytes.capacityWith(chunk.length) - bytes.capacity)) this.#giveUp('no_room');
    // A copy: the upstream client overwrites its buffer.
    else bytes.add(chunk);
  }

  /** For an event stream: whether the next event would begin as a new event. */
  get isBetweenEvents(): boolean {
    const boundary = new EventBoundary();
    boundary.pass(this.#bytes.all);
    return boundary.isBetweenEvents;
  }

  /** The answer is complete, and charged. @param costLines  what it cost in the end, as header lines */
  keep(accountId: string, usageId: string, costLines: string): void {
    const head = this.#head;
    if (head === null) return;
    const body = this.#bytes.all;
    this.#drop();
    const lines = costLines + head.lines;
    this.#isKept = this.#answers.keep(accountId, usageId, { ...head, lines, body });
  }

  /** How its claim ends. Nothing is captured after this. @param amountMicros what the call costs */
  end(amountMicros: number): EndedClaim {
    this.#drop();
    return { name: this.#name, charged: { bodyDigest: this.#bodyDigest, keeps: this.#isKept, amountMicros } };
  }

  #giveUp(why: NotKept): void {
    this.#answers.isNotKept(why);
    this.#drop();
  }

  #drop(): void {
    this.#answers.capture(-this.#bytes.capacity);
    this.#bytes.clear();
    this.#head = null;
    this.#isGivenUp = true;
  }
}
