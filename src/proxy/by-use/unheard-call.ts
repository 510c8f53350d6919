import type { RefundReason } from '../../ledger/usage-event.ts';
import type { ResponseHead, UpstreamCall, UpstreamError, UpstreamHandler } from '../../upstream/index.ts';
import type { KeyedCall } from '../replay/keyed-call.ts';
import { refundOf } from '../upstream-failure.ts';
import type { UnheardCalls } from './unheard-calls.ts';
import type { Use } from './use.ts';

/** Maximum bytes that are read on, and dropped. A caller that leaves a longer response pays the whole hold. */
const MAX_BYTES = 67_108_864;

/** Why reading on ended before the response did. */
export type Bound = 'time' | 'bytes' | 'number' | 'cut';

/** The state of the call when its caller left. */
export type Left = {
  readonly account: string;
  readonly upstream: UpstreamCall;
  /** Null: the call has a fixed price. */
  readonly use: Use | null;
  /** Null: the call has no idempotency key. */
  readonly keyed: KeyedCall | null;
  /** The listing's `timeout_seconds`: how long the gateway reads on. */
  readonly maxMs: number;
  /** Whether the service had begun to answer. */
  readonly isAnswered: boolean;
  /** The service answers. Called only if it had not answered before the caller left. */
  onAnswer(head: ResponseHead): void;
  /** The response is complete, and will be charged. */
  onComplete(): void;
  onFailure(error: UpstreamError, isAnswered: boolean): void;
  /** The reason for which a call is refunded if its service answers with this status; null: it is not refunded. */
  refundOfAnswer(status: number): RefundReason | null;
  /**
   * Called once.
   *
   * @param capturedMicros what is captured; null: the whole hold
   * @param bytes  of the response body since the caller left
   */
  settle(refund: RefundReason | null, capturedMicros: number | null, bytes: number): void;
};

/**
 * A call whose caller left before its service had finished, and whose answer is read on. If the call is priced by use, it is read
 * on until the service has reported what it cost, so that leaving early saves nothing. If it has an idempotency key, it is read on
 * as long as its answer may be kept, because its caller will come back for it.
 *
 *   onEnd; onHead or onData, if nothing is awaited any more ──► the reported cost is captured, or the price if none was reported
 *   a head whose status is refunded;
 *   onError or `maxMs` before any head ───────────────────────► refunded, as if the caller had stayed
 *   onError after the head ───────────────────────────────────► the whole hold is captured if the report is missing, else refunded
 *   `maxMs` after the head, MAX_BYTES, or room made for
 *   other calls (UnheardCalls) ───────────────────────────────► captured as by onEnd, but the whole hold if the report is missing
 *   the gateway stops ────────────────────────────────────────► refunded
 *
 * A call with a fixed price is charged that price where this says 'captured'.
 *
 * Tested by test/proxy/by-use/endings.test.ts and test/integration/priced-by-use.test.ts.
 */
export class UnheardCall implements UpstreamHandler {
  readonly #left: Left;
  readonly #calls: UnheardCalls;
  readonly #timer: NodeJS.Timeout;
  #isAnswered: boolean;
  #bytes = 0;

  constructor(left: Left, calls: UnheardCalls) {
    this.#left = left;
    this.#isAnswered = left.isAnswered;
    this.#calls = calls;
    this.#timer = setTimeout(() => this.#timeOut(), left.maxMs).unref();
    left.upstream.handTo(this);
    calls.add(this);
    // The caller may have left because it was too slow.
    left.upstream.resume();
  }

  onHead(head: ResponseHead): void {
    this.#isAnswered = true;
    this.#left.onAnswer(head);
    this.#left.use?.readHead(head);
    const refund = this.#left.refundOfAnswer(head.status);
    if (refund !== null) this.#giveUp(refund, null);
    else if (!this.#isAwaited) this.#giveUp(null, this.#capturedMicros);
  }

  get #isAwaited(): boolean {
    return this.#awaitsReport || this.#left.keyed?.isCapturing === true;
  }

  get #awaitsReport(): boolean {
    return this.#left.use?.awaitsReport === true;
  }

  /** What is captured if nothing more is read: the whole hold if there was no report. */
  get #capturedMicros(): number | null {
    const { use } = this.#left;
    return use === null || use.awaitsReport ? null : use.capturedMicros;
  }

  onData(chunk: Buffer): void {
    this.#bytes += chunk.length;
    this.#calls.bytes += chunk.length;
    this.#left.keyed?.onAnswer(chunk);
    if (this.#bytes > MAX_BYTES) this.#captureHold('bytes');
    else if (!this.#isAwaited) this.#giveUp(null, this.#capturedMicros);
  }

  onEnd(trailers: readonly string[]): void {
    const { use } = this.#left;
    use?.read(trailers);
    this.#left.onComplete();
    this.#settle(null, use?.capturedMicros ?? null);
  }

  onError(error: UpstreamError): void {
    this.#left.onFailure(error, this.#isAnswered);
    if (!this.#isAnswered) this.#settle(refundOf(error), null);
    else if (this.#awaitsReport) this.#captureHold('cut');
    else this.#settle('upstream_cut', null);
  }

  onWritable(): void {}

  /** The gateway stops. */
  stop(): void {
    this.#giveUp('unavailable', null);
  }

  /** Too many calls are read on. The call's service may be at work, so it is paid, even if it has not begun to answer. */
  makeRoom(): void {
    this.#captureHold('number');
  }

  get account(): string {
    return this.#left.account;
  }

  #timeOut(): void {
    if (this.#isAnswered) this.#captureHold('time');
    else this.#giveUp('upstream_timeout', null);
  }

  #captureHold(why: Bound): void {
    if (this.#awaitsReport) this.#calls.reached(why);
    this.#giveUp(null, this.#capturedMicros);
  }

  #giveUp(refund: RefundReason | null, capturedMicros: number | null): void {
    this.#left.upstream.destroy();
    this.#settle(refund, capturedMicros);
  }

  #settle(refund: RefundReason | null, capturedMicros: number | null): void {
    clearTimeout(this.#timer);
    this.#calls.remove(this);
    this.#left.settle(refund, capturedMicros, this.#bytes);
  }
}
