// @ts-check
// A request to the local gateway, as any caller makes it.

import http from 'node:http';

/**
 * @typedef {{ key_id: string, secret: string }} Key
 *
 * @typedef {object} ApiAnswer
 * @property {number} status
 * @property {any} body parsed when it is JSON, else the text
 */

/**
 * One request on a connection of its own: an idle one kept open would only be in the way of a drain.
 * @param {string} method
 * @param {string} url
 * @param {{ key?: Key, body?: unknown, headers?: Record<string, string>, timeoutMs?: number }} [options]
 * @returns {Promise<ApiAnswer>}
 */
export function request(method, url, { key, body, headers = {}, timeoutMs = 10_000 } = {}) {
  const payload = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = http.request(url, {
      method,
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        ...headers,
        ...(key === undefined ? {} : { authorization: `Bearer ${key.key_id}:${key.secret}` }),
        ...(payload === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
      },
    });
    outgoing.once('error', reject);
    outgoing.once('response', (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode ?? 0, body: parse(response.headers['content-type'], text) });
      });
    });
    outgoing.end(payload);
  });
}

/** @param {string | undefined} contentType @param {string} text */
const parse = (contentType, text) => (contentType?.includes('json') ? JSON.parse(text) : text);

/**
 * What this URL answers right now; null when nobody does.
 * @param {string} url
 */
export async function tryGet(url) {
  try {
    return await request('GET', url, { timeoutMs: 2_000 });
  } catch {
    // Not listening yet, or cut off while starting: the caller asks again, in bounded time.
    return null;
  }
}

/**
 * Does this URL answer 200 right now?
 * @param {string} url
 */
export async function isOk(url) {
  return (await tryGet(url))?.status === 200;
}
