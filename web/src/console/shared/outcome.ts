/** What became of a call, for people. */
export type Outcome = {
  /** One to three words. */
  readonly word: string;
  readonly tone: 'plain' | 'good' | 'warn';
  /** Who did what, and what it means for the money. */
  readonly text: string;
};

type Recorded = { readonly outcome: string; readonly status: number; readonly free_tier: boolean };

/** The reasons of docs/api.md, as the failure table of docs/design.md explains them. */
const REFUNDS: Readonly<Record<string, readonly [word: string, text: string]>> = {
  upstream_error: ['Service failed', 'The service could not be reached, or did not answer with proper HTTP.'],
  upstream_timeout: ['Service too slow', 'The service did not connect or answer in time.'],
  upstream_busy: ['Service busy', 'The service had as many calls as it may have, and none ended within a second.'],
  upstream_5xx: ['Service error', 'The service answered with a status of 500 or above. You got that answer.'],
  upstream_cut: ['Answer cut', 'The service broke off, or fell silent, within its answer.'],
  caller_gone: ['You left', 'Your program ended the connection before the service had the whole request.'],
  payload_too_large: ['Request too large', 'The body of the request was longer than the gateway allows.'],
  body_too_slow: ['Request too slow', 'The body of the request arrived at less than 1 KiB a second.'],
  unavailable: ['Gateway stopped', 'The gateway could not carry the call to its end.'],
};
const REFUNDED = 'You paid nothing: the money, or the free call, came back.';

/** What became of this call. A reason that this page does not know is named as it is. */
export function outcomeOf({ outcome, status, free_tier: isFree }: Recorded): Outcome {
  if (outcome === 'abandoned') {
    return { word: 'Refunded: gateway died', tone: 'warn', text: `The gateway died during the call. ${REFUNDED}` };
  }
  if (outcome.startsWith('refunded:')) {
    const reason = outcome.slice('refunded:'.length);
    const [word, text] = REFUNDS[reason] ?? [reason, `The gateway gave the reason "${reason}".`];
    return { word: `Refunded: ${word.toLowerCase()}`, tone: 'warn', text: `${text} ${REFUNDED}` };
  }
  if (outcome !== 'completed') return { word: outcome, tone: 'plain', text: `The gateway recorded "${outcome}".` };
  const price = isFree ? 'It used a free call.' : 'Its price was charged.';
  if (status === 499) {
    return {
      word: isFree ? 'Free' : 'Charged',
      tone: 'plain',
      text: `Your program left before the answer, but the service had the whole request and did the work. ${price}`,
    };
  }
  if (status >= 400) {
    return {
      word: isFree ? 'Free' : 'Charged',
      tone: 'plain',
      text: `The service answered, and said that it did not like the request. ${price}`,
    };
  }
  return { word: isFree ? 'Free' : 'Charged', tone: 'good', text: `The service answered. ${price}` };
}

/** Why a status stands there that no service sent. Null for the others: the number says it. */
export function statusText(status: number): string | null {
  if (status === 0) return 'Unknown: the gateway died, so nobody knows what was sent to you.';
  if (status === 499) return 'Your program left before an answer was sent.';
  return null;
}
