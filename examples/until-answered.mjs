// @ts-check
// A call that is repeated until its answer is there, and paid once: each attempt has the same Idempotency-Key. No packages are needed.
//
//   TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… node examples/until-answered.mjs

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiKey, findService, printPrice } from './tollgate.mjs';

const ATTEMPTS = 10;

/**
 * Whatever breaks on the way, the call is sent again as it was. The gateway gives the first answer again, or makes the call if it was
 * not paid.
 *
 * @param {string} url
 * @param {string} body
 * @param {string} idempotencyKey  keep it with what the call is for: a program that starts again goes on where this one ended
 */
async function callUntilAnswered(url, body, idempotencyKey) {
  const headers = {
    Authorization: `Bearer ${apiKey}`,
    'Content-Type': 'text/plain; charset=utf-8',
    'X-ACF-Max-Amount': '0.01',
    'Idempotency-Key': idempotencyKey,
  };
  for (let attempt = 1; ; attempt++) {
    let waitSeconds = 1;
    try {
      const response = await fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) });
      const text = await response.text();
      // 409: the first attempt is under way. 429, 5xx: nothing was paid.
      const isTemporary = [409, 429].includes(response.status) || response.status >= 500;
      if (!isTemporary || attempt === ATTEMPTS) return { response, text };
      console.log(`${response.status}: trying again`);
      waitSeconds = Number(response.headers.get('retry-after')) || 1;
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
      console.log('no answer: trying again');
    }
    await sleep(waitSeconds * 1000);
  }
}

const url = await findService('text statistics');
const { response, text } = await callUntilAnswered(url, 'How many words are these?', randomUUID());
console.log(text);
if (response.ok) printPrice(response.headers);
else process.exitCode = 1;
