// @ts-check
// The service behind every peer. A uWebSockets.js process: measured here it costs the same per request as nginx with
// `return 200` (about 8 µs while other work ran), it is installed with the product, and one process has all the answers the
// scenarios need.
//
//   GET  /hello          221 bytes of JSON
//   ANY  /sink, /upload  reads the whole body, answers as /hello
//   GET  /bytes/<n>      n bytes with a Content-Length
//   GET  /events/<ms>    an event stream: the time of sending in microseconds, every <ms>; 0: one event, then silence

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
/** @returns {typeof import('uws-current')} the newer one where its binary loads, see src/http/uws.ts */
function loadUws() {
  try {
    return require('uws-current');
  } catch {
    return require('uws-legacy');
  }
}

const uws = loadUws();
// LIBUS_LISTEN_EXCLUSIVE_PORT, which the types do not name: without it a second server would share the port unseen.
const exclusivePort = 1;
const port = Number(process.argv[2]);
const filler = '0123456789'.repeat(21);
const hello = `{"data":"${filler}"}`;
if (Buffer.byteLength(hello) !== 221) throw new Error('the small reply has 221 bytes');
const block = Buffer.alloc(512 * 1024, 'tollgate');

/** @typedef {import('uws-current').HttpResponse} HttpResponse */

/** @param {HttpResponse} res */
function sayHello(res) {
  res.writeHeader('content-type', 'application/json').end(hello);
}

/** @param {HttpResponse} res @param {number} total */
function sendBytes(res, total) {
  let open = true;
  res.onAborted(() => {
    open = false;
  });
  /** Every piece is a part of one block that never changes, so what the socket did not take is sent again by its offset. */
  const push = () => {
    for (;;) {
      const offset = res.getWriteOffset();
      const piece = block.subarray(
        offset % block.length,
        Math.min(block.length, (offset % block.length) + total - offset),
      );
      const [taken, done] = res.tryEnd(piece, total);
      if (done) open = false;
      if (done || !taken) return taken;
    }
  };
  res.onWritable(() => (open ? push() : true));
  res.cork(() => {
    res.writeHeader('content-type', 'application/octet-stream');
    push();
  });
}

/** @param {HttpResponse} res */
function drainBody(res) {
  let open = true;
  res.onAborted(() => {
    open = false;
  });
  res.onData((_chunk, isLast) => {
    if (isLast && open) res.cork(() => sayHello(res));
  });
}

/** CLOCK_MONOTONIC in microseconds: the same for all processes of a machine. */
function now() {
  const [seconds, nanoseconds] = process.hrtime();
  return Math.round(seconds * 1e6 + nanoseconds / 1e3);
}

/** Streams by interval; one timer for all of an interval. @type {Map<number, Set<HttpResponse>>} */
const streams = new Map();

/** @param {number} intervalMs */
function streamsOf(intervalMs) {
  let members = streams.get(intervalMs);
  if (members === undefined) {
    members = new Set();
    streams.set(intervalMs, members);
    if (intervalMs > 0) spread(members, intervalMs);
  }
  return members;
}

// In slices, so that thousands of streams do not all speak in the same millisecond.
const slices = 10;

/** @param {Set<HttpResponse>} members @param {number} intervalMs */
function spread(members, intervalMs) {
  let slice = 0;
  setInterval(() => {
    slice = (slice + 1) % slices;
    let index = 0;
    for (const res of members) {
      if (index % slices === slice) res.cork(() => res.write(`data: ${now()}\n\n`));
      index += 1;
    }
  }, intervalMs / slices);
}

/** @param {HttpResponse} res @param {number} intervalMs */
function sendEvents(res, intervalMs) {
  const members = streamsOf(intervalMs);
  res.onAborted(() => members.delete(res));
  res.cork(() => {
    res.writeHeader('content-type', 'text/event-stream').write(`data: ${now()}\n\n`);
  });
  members.add(res);
}

uws
  .App()
  .get('/hello', (res) => sayHello(res))
  .get('/bytes/:count', (res, req) => sendBytes(res, Number(req.getParameter(0))))
  .get('/events/:ms', (res, req) => sendEvents(res, Number(req.getParameter(0))))
  .any('/sink', (res) => drainBody(res))
  .any('/upload', (res) => drainBody(res))
  .any('/*', (res) => {
    res.writeStatus('404 Not Found').end();
  })
  .listen('127.0.0.1', port, exclusivePort, (socket) => {
    if (socket === false) {
      console.error(`cannot listen on port ${port}`);
      process.exit(1);
    }
  });
