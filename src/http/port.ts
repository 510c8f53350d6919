import { createServer } from 'node:http';

/** Option of `listen`: other processes may listen on the same port. */
export const SHARED_PORT = 0;
/**
 * Option of `listen` (LIBUS_LISTEN_EXCLUSIVE_PORT): no other process may listen on the same port. Otherwise two gateways that
 * were started on one port by mistake would split its connections between them.
 */
export const EXCLUSIVE_PORT = 1;

export const portTaken = (host: string, port: number, setting = ''): Error =>
  new Error(`cannot listen on ${host}:${port}${setting}: the port is taken`);

/**
 * Rejects if any process listens on the port, even one that would share it. The supervisor calls this before it starts workers that
 * share the port.
 */
export function refuseTakenPort(host: string, port: number): Promise<void> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? portTaken(host, port) : error);
    });
    server.listen(port, host, () => server.close(() => resolve()));
  });
}
