// @ts-check
// Ports of this machine: which are free, and what the server on a port answers.
// Tested by test/scripts/start.test.ts.

import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { errorCode } from './files.mjs';

/**
 * Whether a server can listen on this port. Without `host`: on every address, as the gateway does.
 * @param {number} port
 * @param {string} [host]
 * @returns {Promise<boolean>}
 */
export function isPortFree(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      // Another program has the port, or only root may use it.
      if (errorCode(error) === 'EADDRINUSE' || errorCode(error) === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen({ port, ...(host === undefined ? {} : { host }), exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}

// These ports are below the range that systems use for outgoing connections and for port 0 (from 32768 on Linux, 49152
// elsewhere). So no other program gets such a port by accident while our server is down for a restart.
const firstPort = 20_000;
const portCount = 12_000;
const portAttempts = 100;

/** A port of 127.0.0.1 that is free now. Another program may take it before our caller does. @returns {Promise<number>} */
export async function freePort() {
  for (let attempt = 0; attempt < portAttempts; attempt += 1) {
    const port = firstPort + randomInt(portCount);
    if (await isPortFree(port, '127.0.0.1')) return port;
  }
  throw new Error(`no free port found in ${firstPort} to ${firstPort + portCount - 1}`);
}

/** The wanted port if it is free, else any free one. @param {number | undefined} wanted */
export async function portNear(wanted) {
  if (wanted !== undefined && (await isPortFree(wanted, '127.0.0.1'))) return wanted;
  return freePort();
}

/**
 * Sends text to a local server.
 * @param {number} port
 * @param {string} text
 * @param {number} [timeoutMs]
 * @returns {Promise<string | null>} all that the server sent until it closed the connection; null if nobody listens, or if the
 *   server is silent for `timeoutMs`
 */
export function askPort(port, text, timeoutMs = 1_000) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let answer = '';
    const giveUp = () => {
      socket.destroy();
      resolve(null);
    };
    socket.setTimeout(timeoutMs, giveUp);
    socket.once('error', giveUp);
    socket.once('connect', () => socket.write(text));
    socket.on('data', (data) => {
      answer += data.toString('latin1');
    });
    socket.once('close', () => resolve(answer));
  });
}
