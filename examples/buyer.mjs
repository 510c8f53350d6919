// @ts-check
// A buyer in plain JavaScript, without a dependency: finds a service, calls it, and reads what the call cost.
//
//   TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… node examples/buyer.mjs

import { setTimeout as sleep } from 'node:timers/promises';

const { TOLLGATE_URL, TOLLGATE_KEY: key, TOLLGATE_SERVICE: chosen } = process.env;
if (!TOLLGATE_URL || !key) throw new Error('Set TOLLGATE_URL and TOLLGATE_KEY. examples/README.md says how.');
const url = TOLLGATE_URL.replace(/\/$/, '');

/** Finding services needs no key. @returns {Promise<string>} the id of a service */
async function findService() {
  const response = await fetch(`${url}/api/v1/discover?q=text+statistics&limit=1`);
  if (!response.ok) throw new Error(`/discover: ${response.status} ${await response.text()}`);
  const found = /** @type {{ services: { id: string, name: string, price_label: string }[] }} */ (
    await response.json()
  );
  const [first] = found.services;
  if (first === undefined) throw new Error('No service was found. Set TOLLGATE_SERVICE to the id of one.');
  console.log(`${first.name}: ${first.price_label}`);
  return first.id;
}

/**
 * Calls a service. A call that was refused for now is sent again, because a response without X-ACF-Amount, or with 0 in it, cost
 * nothing. If fetch throws, there was no response: the call may have been charged, so look at GET /api/v1/usage/me before you repeat
 * it. This function lets that error through.
 *
 * @param {string} path of the gateway
 * @param {RequestInit} init
 */
async function call(path, init) {
  for (let attempt = 1; ; attempt++) {
    const headers = { Authorization: `Bearer ${key}`, 'X-ACF-Max-Amount': '0.01' };
    const response = await fetch(url + path, { ...init, headers: { ...init.headers, ...headers } });
    const waitSeconds = Number(response.headers.get('retry-after'));
    const wasFree = Number(response.headers.get('x-acf-amount') ?? 0) === 0;
    const isTemporary = response.status === 429 || response.status === 503;
    if (!isTemporary || !wasFree || !waitSeconds || attempt === 3) return response;
    console.log(`refused with ${response.status}: trying again in ${waitSeconds} s`);
    await sleep(waitSeconds * 1000);
  }
}

const service = chosen || (await findService());
const response = await call(`/api/v1/proxy/${service}/`, {
  method: 'POST',
  headers: { 'Content-Type': 'text/plain' },
  body: 'How many words are these?',
});
const text = await response.text();
const amount = response.headers.get('x-acf-amount');
if (response.ok) {
  console.log(text);
  console.log(`paid $${amount}, $${response.headers.get('x-acf-balance')} left`);
} else {
  // The same call again would fail again until the reason is gone, so this ends here.
  process.exitCode = 1;
  // A service may answer 402 too, in its own words. Without X-ACF-Amount the answer is the gateway's.
  if (response.status === 402 && amount === null) {
    const { error, message, required, balance } = JSON.parse(text);
    const isPoor = error === 'insufficient_balance';
    console.error(isPoor ? `the call costs $${required} and the account has $${balance}: ask for a credit` : message);
  } else console.error(`${response.status} ${text}`);
}
