// Loaded before each file of `npm run test:unit`: whatever would listen, or start a process, fails the test.

import { ChildProcess } from 'node:child_process';
import { Socket as DatagramSocket } from 'node:dgram';
import { Server } from 'node:net';

function refuse(what: string): () => never {
  return () => {
    throw new Error(
      `a unit test ${what}. Import the function that does so by name, and have that name in STARTERS ` +
        '(test/support/unit-files.ts): the file is then left to npm test.',
    );
  };
}

Server.prototype.listen = refuse('opened a server');
DatagramSocket.prototype.bind = refuse('opened a socket');
// Behind spawn, fork, exec and execFile. What spawnSync and the like start has ended when they return.
Object.assign(ChildProcess.prototype, { spawn: refuse('started a process') });
