/** What became of a call, for people. */
export type Outcome = {
  /** One word: `Charged`. */
  readonly word: string;
  /** Of a refund, why, in a few words. */
  readonly reason: string | null;
  readonly tone: 'plain' | 'good' | 'warn';
  /** Who did what, and what it means for the money. */
  readonly text: string;
};

type Recorded = {
  readonly outcome: string;
  readonly status: number;
  readonly free_tier: boolean;
  readonly amount?: number;
};

/** The reasons of docs/api.md, as the failure table of docs/design.md explains them. */
const REFUNDS: Readonly<Record<string, readonly [reason: string, text: string]>> = {
  upstream_error: ['service failed', 'The service could not be reached, or did not answer with proper HTTP.'],
  upstream_timeout: ['service too slow', 'The service did not connect or answer in time.'],
  upstream_busy: ['service busy', 'The service had as many calls as it may have, and none ended within a second.'],
  upstream_5xx: ['service error', 'The service answered with a status of 500 or above. You got that answer.'],
  upstream_cut: ['answer cut', 'The service broke off, or fell silent, within its answer.'],
  caller_gone: ['you left', 'Your program ended the connection before the service had the whole request.'],
  payload_too_large: ['request too large', 'The body of the request was longer than the gateway allows.'],
  body_too_slow: ['request too slow', 'The body of the request arrived at less than 1 KiB a second.'],
  unavailable: ['gateway stopped', 'The gateway could not carry the call to its end.'],
};
const REFUNDED = 'You paid nothing: the money, or the free call, came back.';

/** What became of this call. A reason that this page does not know is named as it is. */
export function outcomeOf({ outcome, status, free_tier: usedFreeCall, amount }: Recorded): Outcome {
  if (outcome === 'abandoned') {
    return {
      word: 'Refunded',
      reason: 'gateway died',
      tone: 'warn',
      text: `The gateway died during the call. ${REFUNDED}`,
    };
  }
  if (outcome.startsWith('refunded:')) {
    const code = outcome.slice('refunded:'.length);
    const [reason, text] = REFUNDS[code] ?? [code, `The gateway gave the reason "${code}".`];
    return { word: 'Refunded', reason, tone: 'warn', text: `${text} ${REFUNDED}` };
  }
  if (outcome !== 'completed')
    return { word: outcome, reason: null, tone: 'plain', text: `The gateway recorded "${outcome}".` };
  // Calls of services without a price cost nothing, either.
  const isFree = usedFreeCall || amount === 0;
  const price = usedFreeCall ? 'It used a free call.' : isFree ? 'It cost nothing.' : 'Its price was charged.';
  if (status === 499) {
    return {
      word: isFree ? 'Free' : 'Charged',
      reason: null,
      tone: 'plain',
      text: `Your program left before the answer, but the service had the whole request and did the work. ${price}`,
    };
  }
  if (status >= 400) {
    return {
      word: isFree ? 'Free' : 'Charged',
      reason: null,
      tone: 'plain',
      text: `The service answered, and said that it did not like the request. ${price}`,
    };
  }
  return { word: isFree ? 'Free' : 'Charged', reason: null, tone: 'good', text: `The service answered. ${price}` };
}

/** Why a status stands there that no service sent. Null for the others: the number says it. */
export function statusText(status: number): string | null {
  if (status === 0) return 'Unknown: the gateway died, so nobody knows what was sent to you.';
  if (status === 499) return 'Your program left before an answer was sent.';
  return null;
}
