// @ts-check

import { randomInt } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { errorCode } from './files.mjs';

/**
 * Can a server listen on this port? Without a host: on every address, as the gateway does.
 * @param {number} port
 * @param {string} [host]
 * @returns {Promise<boolean>}
 */
export function isPortFree(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      // Another program has it, or the port is one that only root may take: free for others is not free for us.
      if (errorCode(error) === 'EADDRINUSE' || errorCode(error) === 'EACCES') resolve(false);
      else reject(error);
    });
    server.listen({ port, ...(host === undefined ? {} : { host }), exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}

// Below the range that systems hand out for outgoing connections and for port 0 (from 32768 on Linux, 49152 elsewhere):
// nobody gets such a port by accident while its server is down for a restart.
const firstPort = 20_000;
const portCount = 12_000;
const portAttempts = 100;

/** A port of 127.0.0.1 that was free a moment ago: callers must cope with losing it. @returns {Promise<number>} */
export async function freePort() {
  for (let attempt = 0; attempt < portAttempts; attempt += 1) {
    const port = firstPort + randomInt(portCount);
    if (await isPortFree(port, '127.0.0.1')) return port;
  }
  throw new Error(`no free port found in ${firstPort} to ${firstPort + portCount - 1}`);
}

/** The wanted port if nobody has it, else any free one. @param {number | undefined} wanted */
export async function portNear(wanted) {
  if (wanted !== undefined && (await isPortFree(wanted, '127.0.0.1'))) return wanted;
  return freePort();
}

/**
 * Sends text to a local server and answers all it said until it closed the connection, or null when nobody listens or
 * it takes too long.
 * @param {number} port
 * @param {string} text
 * @param {number} [timeoutMs]
 * @returns {Promise<string | null>}
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
