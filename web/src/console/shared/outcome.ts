import { CAUSE_TEXTS } from '../../../../src/proxy/cause-texts.ts';

/** How a call ended, for people. */
type Outcome = {
  /** One word: `Charged`. */
  readonly word: string;
  /** For a refund: the reason, in a few words. */
  readonly reason: string | null;
  readonly tone: 'plain' | 'good' | 'warn' | 'bad';
  /** Who did what, and what it means for the money. */
  readonly text: string;
  /** Whether the service is to blame: such calls count against its quality. */
  readonly isFailure: boolean;
};

type Recorded = {
  readonly outcome: string;
  readonly status: number;
  readonly free_tier: boolean;
  readonly amount?: number;
  /** Calls priced by use only. */
  readonly authorized?: number;
  /** What was given back of the call after it had ended. */
  readonly refunded?: number;
  /** Why the service failed the call: only its provider and operators are told. */
  readonly cause?: string;
};

/** The reasons of docs/api.md, as the failure table of docs/design.md explains them. */
const REFUNDS: Readonly<Record<string, readonly [reason: string, text: string]>> = {
  upstream_error: ['service failed', 'The service could not be reached, or did not answer as its protocol demands.'],
  upstream_timeout: ['service too slow', 'The service did not connect or answer in time.'],
  upstream_busy: ['service busy', 'The service had as many calls as it may have, and none ended within a second.'],
  upstream_5xx: ['service error', 'The service answered with a status of 500 or above, which was passed on.'],
  upstream_cut: ['answer cut', 'The service broke off, or fell silent, within its answer.'],
  upstream_denied: [
    'credentials refused',
    'The service refused the credentials that its listing adds, or their quota was used up.',
  ],
  upstream_rate_limited: [
    'asked too often',
    'The service answered 429. The call had an Idempotency-Key, so its program repeats it until it is answered.',
  ],
  caller_gone: ['caller left', 'The calling program ended the connection before the service had the whole request.'],
  payload_too_large: ['request too large', 'The body of the request was longer than the gateway allows.'],
  body_too_slow: ['request too slow', 'The body of the request arrived at less than 1 KiB a second.'],
  unavailable: ['gateway stopped', 'The gateway could not carry the call to its end.'],
};
const FAILURES = new Set(['upstream_error', 'upstream_timeout', 'upstream_5xx', 'upstream_cut', 'upstream_denied']);
const REFUNDED = {
  buyer: 'You paid nothing: it was not charged, and no free call was used.',
  others: 'The buyer paid nothing: it was not charged, and no free call was used.',
} as const;

/** Why calls were refunded or refused, in words. A code that this page does not know is shown as words, too. */
export const codeText = (code: string): string => REFUNDS[code]?.[0] ?? code.replaceAll('_', ' ');

/**
 * How this call ended. A reason that this page does not know is shown unchanged. @param side who reads it: the buyer, or somebody
 * else
 *
 * @param side  who reads it: the buyer, or somebody else
 */
export function outcomeOf(
  { outcome, status, free_tier: usedFreeCall, amount, authorized, refunded = 0, cause }: Recorded,
  side: keyof typeof REFUNDED,
): Outcome {
  const none = { reason: null, isFailure: false };
  if (outcome === 'abandoned') {
    const text = `The gateway died during the call. ${REFUNDED[side]}`;
    return { ...none, word: 'Refunded', reason: 'gateway died', tone: 'warn', text };
  }
  if (outcome.startsWith('refunded:')) {
    const code = outcome.slice('refunded:'.length);
    const [reason, general] = REFUNDS[code] ?? [code, `The gateway gave the reason "${code}".`];
    const text = causeText(cause) ?? general;
    return {
      word: 'Refunded',
      reason,
      tone: 'warn',
      isFailure: FAILURES.has(code),
      text: `${text} ${REFUNDED[side]}`,
    };
  }
  if (outcome !== 'completed')
    return { ...none, word: outcome, tone: 'plain', text: `The gateway recorded "${outcome}".` };
  // Calls of services without a price cost nothing, either.
  const isFree = usedFreeCall || amount === 0;
  const charged = authorized === undefined ? 'Its price was charged.' : 'It was charged by use.';
  const price = usedFreeCall ? 'It used a free call.' : isFree ? 'It cost nothing.' : charged;
  const text = `${answerText(status, side)} ${price}`;
  if (refunded > 0) {
    const isWhole = refunded === amount;
    const word = isWhole ? 'Given back' : 'Given back in part';
    return { ...none, word, tone: 'warn', text: `${text} ${isWhole ? 'All' : 'A part'} of it was given back later.` };
  }
  return { ...none, word: isFree ? 'Free' : 'Charged', tone: status < 400 ? 'good' : 'plain', text };
}

/** @param cause may be one that these pages do not know */
export const causeText = (cause: string | undefined): string | undefined =>
  (CAUSE_TEXTS as Readonly<Record<string, string>>)[cause ?? ''];

function answerText(status: number, side: keyof typeof REFUNDED): string {
  if (status < 400) return 'The service answered.';
  if (status !== 499) return 'The service answered that it could not accept the request.';
  const who = side === 'buyer' ? 'Your' : 'The calling';
  return `${who} program left before the answer, but the service had the whole request and did the work.`;
}

/** Why the call has a status that no service sent. Null for other statuses, which need no explanation. */
export function statusText(status: number): string | null {
  if (status === 0) return 'Unknown: the gateway died, so nobody knows what was sent to you.';
  if (status === 499) return 'Your program left before an answer was sent.';
  return null;
}
