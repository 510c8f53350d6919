// A service that answers only to calls which its gateway has signed. Node 20 or newer, nothing to install.
//
//   SIGNING_SECRET=sgs_... PORT=8000 node server.mjs

import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import process from 'node:process';

// Exactly these components must be signed, or an attacker could leave some out.
const SIGNED =
  /(sig\d+)=(\("@method" "@authority" "@path" "@query" "x-acf-usage-id" "x-acf-buyer"\);created=(\d+);[^,]*)/g;

/**
 * Whether a request comes from the gateway, is meant for this server, and is less than five minutes old. The body is not signed.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {string} secret the listing's signing_secret
 * @param {string | undefined} authority host and port of the listing's endpoint, if a proxy in front changes the Host header
 */
function isFromGateway({ method, url = '', headers }, secret, authority = headers.host) {
  const path = url.split('?')[0] ?? '';
  const query = url.slice(path.length) || '?';
  const base = `"@method": ${method}\n"@authority": ${authority}\n"@path": ${path}\n"@query": ${query}\n`;
  const ids = `"x-acf-usage-id": ${headers['x-acf-usage-id']}\n"x-acf-buyer": ${headers['x-acf-buyer']}\n`;
  return [...String(headers['signature-input']).matchAll(SIGNED)].some(([, label, params, created]) => {
    const encoded = new RegExp(`${label}=:([^:]*):`).exec(String(headers.signature))?.[1] ?? '';
    const given = Buffer.from(encoded, 'base64');
    const right = createHmac('sha256', secret)
      .update(`${base + ids}"@signature-params": ${params}`)
      .digest();
    const isRecent = Math.abs(Date.now() / 1000 - Number(created)) < 300;
    return isRecent && given.length === right.length && timingSafeEqual(given, right);
  });
}

const secret = process.env.SIGNING_SECRET ?? '';
if (secret === '') throw new Error('SIGNING_SECRET is not set');

const server = createServer((request, response) => {
  const isSigned = isFromGateway(request, secret);
  response.writeHead(isSigned ? 200 : 401, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ signed: isSigned }));
});
server.listen(Number(process.env.PORT ?? 8000), '127.0.0.1', () => {
  const address = server.address();
  console.log(`listening on port ${typeof address === 'object' && address !== null ? address.port : ''}`);
});
