// @ts-check
// The services of the demo provider: a few small HTTP services on loopback, so that there is something to call. Plain node:http.
//
//   node scripts/demo/service.mjs PORT

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { sellSeconds } from '../../examples/price-by-use/seconds.mjs';
import { sellTokens } from '../../examples/price-by-use/tokens.mjs';
import { chat } from './chat.mjs';

const maxBodyBytes = 1024 * 1024;
// How long a request may take to arrive; then Node ends it. A request whose body is too long gets 413 at once, and the rest of the
// body is read and dropped, because closing a connection with unread bytes may lose the response. This time bounds that reading.
const requestTimeoutMs = 30_000;

/**
 * @typedef {object} Exchange
 * @property {http.IncomingMessage} request
 * @property {http.ServerResponse} response
 * @property {URL} url
 * @property {string} body
 * @property {AbortSignal} callerGone
 */

/** Thrown for a request that the service refuses, with the status of the response. */
class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @param {http.ServerResponse} response @param {number} status @param {unknown} value */
function sendJson(response, status, value) {
  const text = `${JSON.stringify(value, null, 2)}\n`;
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/**
 * A number from the query, kept within bounds.
 * @param {URL} url @param {string} name @param {{ fallback: number, max: number }} bounds
 */
function queryNumber(url, name, { fallback, max }) {
  const value = Number(url.searchParams.get(name) ?? fallback);
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), max) : fallback;
}

/** Answers with the request as the service received it. @param {Exchange} exchange */
function echo({ request, response, url, body }) {
  sendJson(response, 200, {
    method: request.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: request.headers,
    body,
  });
}

/** Counts the text in the body or in `?text=`. @param {Exchange} exchange */
function textStatistics({ response, url, body }) {
  const text = body === '' ? (url.searchParams.get('text') ?? '') : body;
  sendJson(response, 200, {
    characters: [...text].length,
    words: text.split(/\s+/).filter(Boolean).length,
    lines: text === '' ? 0 : text.split('\n').length,
  });
}

/** Sends `?events=` server-sent events, one every `?interval_ms=`. @param {Exchange} exchange */
async function eventStream({ response, url, callerGone }) {
  const events = queryNumber(url, 'events', { fallback: 5, max: 1_000 });
  const intervalMs = queryNumber(url, 'interval_ms', { fallback: 500, max: 10_000 });
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  for (let number = 1; number <= events; number += 1) {
    response.write(`event: tick\nid: ${number}\ndata: ${JSON.stringify({ number, of: events })}\n\n`);
    await sleep(intervalMs, undefined, { signal: callerGone });
  }
  response.end('event: done\ndata: [DONE]\n\n');
}

/** Answers after `?ms=`. @param {Exchange} exchange */
async function slow({ response, url, callerGone }) {
  const ms = queryNumber(url, 'ms', { fallback: 2_000, max: 20_000 });
  await sleep(ms, undefined, { signal: callerGone });
  sendJson(response, 200, { waited_ms: ms });
}

let flakyCalls = 0;

/** Every other call fails, and the gateway refunds it. @param {Exchange} exchange */
function flaky({ request, response }) {
  // By HEAD the gateway asks whether a new endpoint answers, which is no call: the first call is to work.
  if (request.method !== 'HEAD') flakyCalls += 1;
  if (flakyCalls % 2 === 1) sendJson(response, 200, { call: flakyCalls, outcome: 'this one works' });
  else sendJson(response, 500, { call: flakyCalls, outcome: 'this one fails: look at X-ACF-Amount and the balance' });
}

/** @type {Map<string, (exchange: Exchange) => void | Promise<void>>} first path segment → service */
const services = new Map(Object.entries({ echo, text: textStatistics, events: eventStream, slow, flaky, chat }));

/** The examples that sell by use, as they stand there. They read the request themselves. */
const sellers = new Map(
  Object.entries({
    seconds: sellSeconds,
    tokens: (/** @type {http.IncomingMessage} */ request, /** @type {http.ServerResponse} */ response) => {
      request.url = request.url?.slice('/tokens'.length) ?? '/';
      return sellTokens(request, response, `http://127.0.0.1:${request.socket.localPort}/chat`);
    },
  }),
);

/** @param {http.IncomingMessage} request */
async function readBody(request) {
  /** @type {Buffer[]} */
  const chunks = [];
  let bytes = 0;
  // The default iterator destroys the connection when the loop is left before the end, and then the 413 could not be sent.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) throw new Refused(413, `the body is longer than ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** @param {http.IncomingMessage} request @returns {URL} */
function readUrl(request) {
  const target = request.url ?? '/';
  // A target that begins with a slash is a path. Parsed by itself, `//host` would count as the name of a host.
  const url = target.startsWith('/') ? `http://demo${target}` : target;
  if (!URL.canParse(url)) throw new Refused(400, 'the request target is not a valid URL');
  return new URL(url);
}

/** @param {http.IncomingMessage} request @param {http.ServerResponse} response @param {AbortSignal} callerGone */
async function handle(request, response, callerGone) {
  const url = readUrl(request);
  if (url.pathname === '/healthz') return sendJson(response, 200, { status: 'ok' });
  const name = url.pathname.split('/')[1] ?? '';
  const sell = sellers.get(name);
  if (sell !== undefined) return void (await sell(request, response));
  const service = services.get(name);
  if (service === undefined) throw new Refused(404, 'no such demo service');
  await service({ request, response, url, body: await readBody(request), callerGone });
}

/** @param {http.IncomingMessage} request @param {http.ServerResponse} response @param {unknown} error */
function answerError(request, response, error) {
  // The caller has left, which is normal: there is nobody to answer.
  if (response.destroyed) return;
  if (response.headersSent) return void response.destroy();
  const message = error instanceof Error ? error.message : String(error);
  sendJson(response, error instanceof Refused ? error.status : 500, { error: message });
  request.resume();
}

/** @param {number} port */
export function serveDemo(port) {
  const server = http.createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    handle(request, response, gone.signal).catch((error) => answerError(request, response, error));
  });
  // Longer than the gateway keeps idle connections to services (30 s). If the service closed an idle connection first, the gateway
  // could send a call on it at that very moment.
  server.keepAliveTimeout = 120_000;
  server.listen(port, '127.0.0.1');
  return server;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const port = Number(process.argv[2]);
  if (!Number.isInteger(port)) throw new Error('usage: service.mjs PORT');
  const server = serveDemo(port);
  process.on('SIGTERM', () => {
    server.close();
    server.closeAllConnections();
  });
}
