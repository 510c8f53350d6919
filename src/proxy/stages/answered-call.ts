import type { RefundReason } from '../../ledger/usage-event.ts';
import type { ResponseHead } from '../../upstream/index.ts';
import { usageEvent, wantsUsageEvent } from '../by-use/cost-event.ts';
import type { Flow } from '../by-use/paused-service.ts';
import { EventStream, isEventStream, type StreamingCall } from '../event-stream.ts';
import type { AdmittedCall } from './admitted-call.ts';
import type { IdentifiedCall } from './identified-call.ts';

/** A call whose service has begun to answer: the response on its way to the caller. */
export class AnsweredCall implements StreamingCall {
  readonly status: number;
  /** Decided by the head alone: the reason for a refund, or null. */
  readonly refund: RefundReason | null;
  /** Bytes of the body that the service has sent. */
  bytes = 0;
  readonly #identified: IdentifiedCall;
  readonly #admitted: AdmittedCall;
  readonly #flow: Flow;
  /**
   * The service's response head, kept back until its body begins or ends. If the service fails before that, the caller can
   * still get an error response. The head of an event stream is kept back only until the end of this event-loop turn.
   */
  #pendingHead: ResponseHead | null;
  /** Null unless the response is an event stream. */
  readonly #events: EventStream | null;

  constructor(head: ResponseHead, identified: IdentifiedCall, admitted: AdmittedCall, flow: Flow) {
    this.status = head.status;
    this.refund = admitted.refundOfAnswer(head.status, identified);
    this.#identified = identified;
    this.#admitted = admitted;
    this.#flow = flow;
    this.#pendingHead = head;
    this.#events = isEventStream(head) ? new EventStream(this, identified.call.options.eventStreams) : null;
  }

  get isEventStream(): boolean {
    return this.#events !== null;
  }

  /** Whether the caller has been given the response head. From then on it can get no other response. */
  get hasBegun(): boolean {
    return this.#pendingHead === null;
  }

  onData(chunk: Buffer): void {
    this.bytes += chunk.length;
    const bytes = this.#events === null ? chunk : this.#events.pass(chunk);
    if (bytes.length > 0) this.send(bytes);
  }

  send(bytes: Uint8Array): void {
    this.begin();
    this.#admitted.keyed?.onAnswer(bytes);
    if (!this.#identified.call.caller.write(bytes)) this.#flow.pause();
  }

  get isStalled(): boolean {
    return this.#flow.isPaused;
  }

  /** Gives the caller the response head, unless it already has it. */
  begin(): void {
    const head = this.#pendingHead;
    if (head === null) return;
    this.#pendingHead = null;
    const { call } = this.#identified;
    const lines = this.#admitted.headerLines(this.refund !== null) + this.#identified.responseLines(head.headers);
    call.caller.begin(head.status, lines, head.isAscii, head.contentLength, head.hasBody);
  }

  /** The response is complete: gives the caller everything that is still missing before its end. */
  complete(): void {
    this.begin();
    const events = this.#events;
    if (events === null || !wantsUsageEvent(this.#identified.call.head.headers)) return;
    this.send(usageEvent(this.#admitted.cost, events.isBetweenEvents));
  }

  /** Ends the comments in an event stream, because the call is settled. */
  stop(): void {
    this.#events?.end();
  }
}
