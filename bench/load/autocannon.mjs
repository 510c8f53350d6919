// @ts-check
// The driver that is used if wrk is not installed. It spends about as much CPU on a call as the slower peers do, so calls/s are
// lower than with wrk. The CPU of the proxy per call is comparable.

import autocannon from 'autocannon';
import { readAuthorizations, readJob, statusCounter, writeResult } from './drive.mjs';
import { newHistogram, recordMicros, summaryOf } from './histogram.mjs';

const job = readJob();
const authorizations = readAuthorizations(job);
const latency = newHistogram();
const statuses = statusCounter(job);
let bytes = 0;
let nextClient = 0;

/** Every connection has its own keys and requests, made beforehand, so that none is built while the clock runs. */
function requestsOfNextClient() {
  const own = authorizations.filter((_, index) => index % job.connections === nextClient);
  nextClient += 1;
  // If there are more connections than keys, connections share keys.
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
    // autocannon has one number for failed and lost connections.
    const { timeouts, errors: lost, duration } = result;
    const { unexpected, tolerated } = statuses.counts;
    writeResult({
      seconds: duration,
      calls: latency.count,
      bytes,
      tolerated,
      errors: { connect: 0, socket: lost - timeouts, timeout: timeouts, status: unexpected },
      latency: summaryOf(latency),
    });
  },
);

// autocannon's own histogram has a resolution of one millisecond, which is too coarse for calls over loopback.
instance.on('response', (_client, status, responseBytes, milliseconds) => {
  recordMicros(latency, milliseconds * 1000);
  bytes += responseBytes;
  statuses.count(status);
});
