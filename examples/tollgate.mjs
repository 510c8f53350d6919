// @ts-check
// What the SDK examples share: settings, a way to find a service, and a fetch that never pays twice. Copy what you need.

import { setTimeout as sleep } from 'node:timers/promises';

/** Where the gateway is, for example http://127.0.0.1:8080. */
export const gatewayUrl = required('TOLLGATE_URL');
/** The API key, `{key_id}:{secret}`. */
export const apiKey = required('TOLLGATE_KEY');

/** @param {string} name of an environment variable */
function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`Set ${name}. examples/README.md says how.`);
  return value.replace(/\/$/, '');
}

/**
 * @param {string} words that must occur in the service's name or description. TOLLGATE_SERVICE, the id of a service, overrides them
 * @returns {Promise<string>} the URL under which the gateway offers the service, with a slash at its end
 */
export async function findService(words) {
  const id = process.env.TOLLGATE_SERVICE;
  if (id) return `${gatewayUrl}/api/v1/proxy/${id}/`;
  const response = await fetch(`${gatewayUrl}/api/v1/discover?limit=1&q=${encodeURIComponent(words)}`);
  if (!response.ok) throw new Error(`/discover: ${response.status} ${await response.text()}`);
  const found = /** @type {{ services: { proxy_path: string }[] }} */ (await response.json());
  const [first] = found.services;
  if (first === undefined) throw new Error(`No service matches '${words}'. Set TOLLGATE_SERVICE to the id of one.`);
  return gatewayUrl + first.proxy_path;
}

/**
 * A fetch for SDKs that knows the gateway's rule for retries: a response without X-ACF-Amount, or with 0 in it, cost nothing, so
 * the request may be sent again once Retry-After is over. Nothing else is repeated. A connection that breaks is an error here,
 * because the call may have been charged: GET /api/v1/usage/me tells. Use it with `maxRetries: 0`, because the retries of the SDKs do
 * not know this rule.
 *
 * @type {typeof fetch}
 */
export const carefulFetch = async (input, init) => {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(input, init);
    const retryAfterSeconds = Number(response.headers.get('retry-after'));
    const wasFree = Number(response.headers.get('x-acf-amount') ?? 0) === 0;
    const isTemporary = response.status === 429 || response.status === 503;
    if (!isTemporary || !wasFree || !retryAfterSeconds || attempt === 3) return response;
    await response.body?.cancel();
    await sleep(retryAfterSeconds * 1000);
  }
};

/** @param {Headers} headers of a response to a call */
export function printPrice(headers) {
  console.log(`paid $${headers.get('x-acf-amount')}, $${headers.get('x-acf-balance')} left`);
}
