// @ts-check
// The service behind every peer, written with uWebSockets.js. It takes as much CPU for a request as nginx with `return 200` (about
// 8 µs while other work ran), it needs no package beyond those of the product, and one process has all responses that the scenarios
// need.
//
//   GET  /hello          221 bytes of JSON
//   GET  /charged        the same, and what the call cost
//   ANY  /sink, /upload  reads the whole body, then answers as /hello
//   GET  /bytes/<n>      n bytes with a Content-Length
//   GET  /events/<ms>    an event stream: every <ms> an event with the time of sending in microseconds; 0: one event only

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
/** @returns {typeof import('uws-current')} the newer version if its binary loads, see src/http/uws.ts */
function loadUws() {
  try {
    return require('uws-current');
  } catch {
    return require('uws-legacy');
  }
}

const uws = loadUws();
// LIBUS_LISTEN_EXCLUSIVE_PORT, which is missing in the types. Without it a second server could share the port unnoticed.
const exclusivePort = 1;
const port = Number(process.argv[2]);
const filler = '0123456789'.repeat(21);
const hello = `{"data":"${filler}"}`;
if (Buffer.byteLength(hello) !== 221) throw new Error('the small reply must have 221 bytes');
const block = Buffer.alloc(512 * 1024, 'tollgate');

/** @typedef {import('uws-current').HttpResponse} HttpResponse */

/** @param {HttpResponse} res */
function sayHello(res) {
  res.writeHeader('content-type', 'application/json').end(hello);
}

/** The price of the listing (peers/peer.mjs). A call that is held for more gets the rest back. @param {HttpResponse} res */
function charge(res) {
  res.writeHeader('x-acf-charge', '0.0001');
  sayHello(res);
}

/** @param {HttpResponse} res @param {number} total */
function sendBytes(res, total) {
  let open = true;
  res.onAborted(() => {
    open = false;
  });
  /** All bytes come from one block that never changes, so what the socket did not take can be sent again by its offset. */
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

/** CLOCK_MONOTONIC in microseconds, which is the same for all processes of a machine. */
function now() {
  const [seconds, nanoseconds] = process.hrtime();
  return Math.round(seconds * 1e6 + nanoseconds / 1e3);
}

/** The open streams by their interval. All streams of an interval share one timer. @type {Map<number, Set<HttpResponse>>} */
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

// The streams of an interval send in this many groups, so that thousands of them do not send in the same millisecond.
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
  .get('/charged', (res) => charge(res))
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
