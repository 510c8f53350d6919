import type { LoadedUws, us_listen_socket } from './uws.ts';

/** What `listen` shares a port by; without it the port is for this socket alone. */
export const SHARED_PORT = 0;
/** LIBUS_LISTEN_EXCLUSIVE_PORT: two gateways started by mistake on one port would split the calls between them. */
export const EXCLUSIVE_PORT = 1;

/** A uWebSockets.js app whose `listen` takes options, which its types leave out. */
export type ListenWithOptions = {
  listen(host: string, port: number, options: number, callback: (socket: us_listen_socket | false) => void): void;
};

export const portTaken = (host: string, port: number, setting = ''): Error =>
  new Error(`cannot listen on ${host}:${port}${setting}: the port is taken`);

/** Rejects when anybody listens there, whether they would share the port or not. */
export function refuseTakenPort({ uws }: LoadedUws, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    (uws.App() as unknown as ListenWithOptions).listen(host, port, EXCLUSIVE_PORT, (socket) => {
      if (socket === false) {
        reject(portTaken(host, port));
        return;
      }
      uws.us_listen_socket_close(socket);
      resolve();
    });
  });
}
