// @ts-check
// An orchestrator that gives each of its sub-agents fifty cents. The money stays in its own account: a sub-agent gets a key of its own,
// with which no more can be spent than that, however many calls it makes at once.
//
//   TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… node examples/orchestrator.mjs

import { apiKey, findService, gatewayUrl, printPrice } from './tollgate.mjs';

/** @param {string} path @param {RequestInit} init */
async function ask(path, init = {}) {
  const headers = { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' };
  const response = await fetch(gatewayUrl + path, { ...init, headers });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

/** What a sub-agent does with its key. A real one runs elsewhere and needs nothing else. @param {string} key */
async function subAgent(key) {
  const service = await findService('text statistics');
  const headers = { Authorization: `Bearer ${key}`, 'X-ACF-Max-Amount': '0.01' };
  const response = await fetch(`${service}?text=How+many+words+are+these`, { headers });
  // 402 `budget_exceeded`: it has spent its fifty cents. 402 `insufficient_balance`: the account has nothing left.
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  console.log(await response.text());
  printPrice(response.headers);
}

await Promise.all(
  ['researcher', 'writer'].map(async (label) => {
    const budget = { amount: 0.5, period: 'total' };
    const made = await ask('/api/v1/keys', { method: 'POST', body: JSON.stringify({ label, budget }) });
    const child = /** @type {{ key_id: string, secret: string }} */ (made);
    try {
      await subAgent(`${child.key_id}:${child.secret}`);
    } finally {
      await ask(`/api/v1/keys/${child.key_id}`, { method: 'DELETE' });
    }
  }),
);
// `GET /api/v1/usage` has in `by_key` what each of them has spent, a second after its last call has ended.
