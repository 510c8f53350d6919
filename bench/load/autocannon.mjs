// @ts-check
// The driver where wrk is not installed. It costs about as much CPU per call as the slower peers, so calls/s are lower
// than with wrk; CPU per call of the proxy is comparable.

import autocannon from 'autocannon';
import { readAuthorizations, readJob, statusCounter, writeResult } from './drive.mjs';
import { newHistogram, recordMicros, summaryOf } from './histogram.mjs';

const job = readJob();
const authorizations = readAuthorizations(job);
const latency = newHistogram();
const statuses = statusCounter(job);
let bytes = 0;
let nextClient = 0;

/** Every connection gets its share of the keys: no request is built while the clock runs. */
function requestsOfNextClient() {
  const own = authorizations.filter((_, index) => index % job.connections === nextClient);
  nextClient += 1;
  // More connections than keys: they share.
  const used = own.length > 0 ? own : [authorizations[nextClient % authorizations.length] ?? null];
  return used.map((authorization) => ({ headers: authorization === null ? {} : { authorization } }));
}

const instance = autocannon(
  {
    url: `${job.protocol}://${job.host}:${job.port}${job.path}`,
    method: /** @type {'GET'} */ (job.method),
    ...(job.bodyBytes > 0 ? { body: Buffer.alloc(job.bodyBytes, 'x') } : {}),
    connections: job.connections,
    duration: job.seconds,
    timeout: 10,
    setupClient: (client) => client.setRequests(requestsOfNextClient()),
  },
  (error, result) => {
    if (error) throw error;
    // autocannon counts what it could not connect and what it lost as one.
    const { timeouts, errors: lost, duration } = result;
    const { unexpected, tolerated } = statuses.counts;
    writeResult({
      ...{ seconds: duration, calls: latency.count, bytes, tolerated },
      errors: { connect: 0, socket: lost - timeouts, timeout: timeouts, status: unexpected },
      latency: summaryOf(latency),
    });
  },
);

// Its own histogram has a resolution of one millisecond: too coarse for a loopback.
instance.on('response', (_client, status, responseBytes, milliseconds) => {
  recordMicros(latency, milliseconds * 1000);
  bytes += responseBytes;
  statuses.count(status);
});
