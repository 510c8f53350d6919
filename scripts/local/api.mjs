// @ts-check
// Requests to the local gateway, made as any caller makes them.

import http from 'node:http';

/**
 * @typedef {{ key_id: string, secret: string }} Key
 *
 * @typedef {object} ApiAnswer
 * @property {number} status
 * @property {any} body the parsed value if it is JSON, else the text
 */

/**
 * Sends one request on a connection of its own. An idle connection that is kept open would delay a drain of the gateway.
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
 * The answer of this URL right now, or null when there is none.
 * @param {string} url
 */
export async function tryGet(url) {
  try {
    return await request('GET', url, { timeoutMs: 2_000 });
  } catch {
    // The server does not listen yet, or was stopped during its start. Our callers ask again, for a bounded time.
    return null;
  }
}

/**
 * Whether this URL answers 200 right now.
 * @param {string} url
 */
export async function isOk(url) {
  return (await tryGet(url))?.status === 200;
}
