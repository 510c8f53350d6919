// @ts-check
// Makes one call before anything is measured, and checks the answer: a peer that answers errors fast is not a fast proxy.

import http from 'node:http';
import https from 'node:https';
import { readAuthorizations } from '../load/drive.mjs';
import { jobOf } from './sample.mjs';

const timeoutMs = 10_000;

/**
 * Makes one call as the driver will make it. Throws if the answer is not the expected one.
 * @param {import('../peers/peer.mjs').Peer} peer
 * @param {import('./sample.mjs').Load} load
 */
export async function probe(peer, load) {
  const job = jobOf(peer, load, { connections: 1, seconds: 1 });
  const [authorization] = readAuthorizations(job).slice(-1);
  const { status, bytes, headers } = await call(job, authorization ?? null);
  const wanted = load.expectStatus ?? 200;
  const what = `${peer.name}: ${job.method} ${job.path}`;
  if (status !== wanted) throw new Error(`${what} answered ${status} instead of ${wanted}`);
  if (wanted === 200 && bytes === 0) throw new Error(`${what} answered without a body`);
  // A call with a key must have been metered. A peer that skips the metering would only look cheaper.
  if (wanted === 200 && authorization && load.rawPath === undefined && !headers['x-acf-amount'])
    throw new Error(`${what} did not meter the call`);
}

/**
 * @param {import('../load/drive.mjs').Job} job
 * @param {string | null} authorization
 * @returns {Promise<{ status: number, bytes: number, headers: http.IncomingHttpHeaders }>}
 */
function call(job, authorization) {
  return new Promise((resolve, reject) => {
    const request = (job.protocol === 'https' ? https : http).request({
      host: job.host,
      port: job.port,
      path: job.path,
      method: job.method,
      agent: false,
      timeout: timeoutMs,
      headers: {
        'content-length': job.bodyBytes,
        ...(authorization === null ? {} : { authorization }),
      },
    });
    request.once('error', reject);
    request.once('timeout', () => request.destroy(new Error(`no answer within ${timeoutMs / 1000} s`)));
    request.once('response', (response) => {
      let bytes = 0;
      response.on('data', (chunk) => {
        bytes += chunk.length;
      });
      response.once('error', reject);
      response.once('end', () => resolve({ status: response.statusCode ?? 0, bytes, headers: response.headers }));
    });
    request.end(Buffer.alloc(job.bodyBytes, 'x'));
  });
}
