import type { CallTerms } from '../admission/call-terms.ts';
import type { RateState } from '../admission/codes.ts';
import { unknownRate } from '../gate/answer.ts';
import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { describeCaller } from './access.ts';
import type { ExchangeOptions } from './exchange-options.ts';
import type { MessageListener, PricedMessage, ReadMessage } from './mcp/messages.ts';
import { refuseUnlessRepeated } from './replay/repeated-call.ts';
import { ArrivedCall } from './stages/arrived-call.ts';
import { CheckedCall } from './stages/checked-call.ts';
import { IdentifiedCall } from './stages/identified-call.ts';

/**
 * Starts the life of one call, from its request head to its settlement. Each stage is an object that knows what was learned in it,
 * and the earlier stages:
 *
 *   ArrivedCall ──► IdentifiedCall ──► CheckedCall ──► AdmittedCall ──► ForwardedCall ──► AnsweredCall
 *   head, caller    key, listing       price           hold             upstream call     response
 *        │                │                 │               │                 │                │
 *        └────────────────┴── refused ──────┘               └─────────────────┴── settled ─────┘
 *
 * - From *arrived* to *identified*, the key may have to be looked up. If the caller leaves meanwhile, nothing happens any more.
 * - From *identified* to *checked*, a call to an MCP server waits for its message, which decides the price. Other calls do not wait.
 * - From *checked* to *admitted* or refused, Redis decides. A call whose idempotency key was used before becomes a `RepeatedCall`.
 * If the caller has left meanwhile, the call is refunded, not forwarded.
 * - A *forwarded* call becomes *answered* with the response head of the service. It may be settled in either stage.
 *   If it is priced by use, and its caller leaves before the service has reported, an `UnheardCall` settles it.
 *
 * A call that is not admitted is refused, and costs nothing. An admitted call is settled exactly once, whatever happens:
 * `AdmittedCall` asserts it. No callback throws.
 *
 * Tested by test/proxy/exchange.test.ts, buffered-bytes.test.ts and stages/, and above all by test/integration/proxying.test.ts,
 * service-failures.test.ts and caller-gone.test.ts.
 */
export function startExchange(options: ExchangeOptions, head: RequestHead, caller: CallerStream): ArrivedCall {
  const call = new ArrivedCall(options, head, caller);
  const who = options.gate.identify(head.authorization, caller);
  if (who instanceof Promise) {
    who.then(
      (key) => onKey(call, key),
      (error: unknown) => call.fail(error, unknownRate(options.gate.limitOf(null))),
    );
  } else {
    onKey(call, who);
  }
  return call;
}

/** @param key  of the caller; null if it has no valid one */
function onKey(call: ArrivedCall, key: KeyRecord | null): void {
  const { head, caller, options } = call;
  // The caller left while its key was looked up, or the gateway is stopping and cut the call off. If the call were admitted now,
  // this process might end before it could settle the call.
  if (key !== null && caller.aborted) return;
  describeCaller(caller, key);
  let identified: IdentifiedCall;
  let terms: CallTerms;
  try {
    identified = new IdentifiedCall(call, key);
    const { tools, operations } = identified.offer;
    if (tools !== null) {
      options.messages.read(head, caller, identified.key, tools, new AwaitedMessage(identified));
      return;
    }
    terms = operations === null ? identified.offer.terms : operations.termsOf(head, identified.target.rest);
  } catch (error) {
    refuseUnlessRepeated(call, key, error);
    return;
  }
  admit(identified, terms, '', null);
}

/** The message of a call to an MCP server. It decides what the call costs, so the checks and the admission wait for it. */
class AwaitedMessage implements MessageListener {
  readonly #identified: IdentifiedCall;

  constructor(identified: IdentifiedCall) {
    this.#identified = identified;
  }

  onMessage({ terms, mark, message }: PricedMessage): void {
    this.#identified.call.clock.beginAdmission();
    admit(this.#identified, terms, mark, message);
  }

  onNoTool(error: unknown, { digest }: ReadMessage): void {
    const { call, key } = this.#identified;
    refuseUnlessRepeated(call, key, error, digest);
  }

  onNoMessage(error: unknown, rate: RateState | null): void {
    const { call, key } = this.#identified;
    if (rate === null) call.refuse(key, error);
    else call.fail(error, rate);
  }
}

/**
 * @param terms what the call costs everybody except the owner of the listing
 * @param mark what the record appends to the path, printable ASCII
 * @param message  the whole request body of a call to an MCP server; null if the body is forwarded as it arrives
 */
function admit(identified: IdentifiedCall, terms: CallTerms, mark: string, message: ReadMessage | null): void {
  const { call, key } = identified;
  let checked: CheckedCall;
  try {
    checked = new CheckedCall(identified, terms, mark, message);
  } catch (error) {
    refuseUnlessRepeated(call, key, error, message?.digest ?? null);
    return;
  }
  call.options.admission.admit(checked, checked);
}
