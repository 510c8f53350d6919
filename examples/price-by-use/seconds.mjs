// @ts-check
// A service that is paid by the second of work: it searches for the largest prime number, for `?seconds=` or as long as is paid for.
// Node 20 or newer, nothing to install.
//
//   PORT=8000 node seconds.mjs

import { createServer } from 'node:http';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const USD_PER_SECOND = 0.01;

/** @param {number} n */
function isPrime(n) {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false;
  return true;
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
export async function sellSeconds(request, response) {
  const asked = Number(new URL(request.url ?? '/', 'http://service').searchParams.get('seconds') ?? 1);
  const paidFor = Number(request.headers['x-acf-authorized'] ?? 0) / USD_PER_SECOND;
  const begun = performance.now();
  const seconds = () => (performance.now() - begun) / 1000;
  let prime = 2;
  for (let n = 3; seconds() < Math.min(asked, paidFor) && !response.destroyed; n++) {
    if (isPrime(n)) prime = n;
    if (n % 1000 === 0) await nextTurn();
  }
  const worked = seconds();
  const charge = (worked * USD_PER_SECOND).toFixed(6);
  response.writeHead(200, { 'Content-Type': 'application/json', 'X-ACF-Charge': charge });
  response.end(JSON.stringify({ prime, seconds: Number(worked.toFixed(3)) }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const server = createServer(sellSeconds);
  server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
    const address = server.address();
    console.log(`listening on port ${typeof address === 'object' && address !== null ? address.port : ''}`);
  });
}
