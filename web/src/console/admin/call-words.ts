import type { Schemas } from '../../api/client.ts';

/** What the reasons of docs/api.md mean, for somebody who is neither the buyer nor the provider. */
const REFUNDS: Readonly<Record<string, string>> = {
  upstream_error: 'The service could not be reached, or did not answer with proper HTTP.',
  upstream_timeout: 'The service did not connect or answer in time.',
  upstream_busy: 'The service had as many calls as it may have, and none ended within a second.',
  upstream_5xx: 'The service answered with a status of 500 or above, and the buyer got that answer.',
  upstream_cut: 'The service broke off, or fell silent, within its answer.',
  caller_gone: 'The buyer ended the connection before the service had the whole request.',
  payload_too_large: 'The body of the request was longer than the gateway allows.',
  body_too_slow: 'The body of the request arrived at less than 1 KiB a second.',
  unavailable: 'The gateway could not carry the call to its end.',
};

/** Who did what, and what that means for the buyer's money. */
export function whatHappened({ outcome, status, amount, free_tier: isFree }: Schemas['Call']): string {
  const paid = isFree
    ? 'It used one of the free calls of the buyer.'
    : amount > 0
      ? 'So the buyer paid its price.'
      : 'It cost nothing.';
  const back = 'So the buyer paid nothing: the price, or the free call, came back.';
  if (outcome === 'abandoned') return `The gateway died during the call. ${back}`;
  if (outcome.startsWith('refunded:')) {
    const code = outcome.slice('refunded:'.length);
    return `${REFUNDS[code] ?? `The gateway gave the reason "${code}".`} ${back}`;
  }
  if (status === 499) return `The buyer left before the answer, but the service had the whole request. ${paid}`;
  if (status >= 400) return `The service answered, and did not like the request. ${paid}`;
  return `The service answered. ${paid}`;
}
