/** Option of `listen`: other processes may listen on the same port. */
export const SHARED_PORT = 0;
/**
 * Option of `listen` (LIBUS_LISTEN_EXCLUSIVE_PORT): no other process may listen on the same port. Otherwise two gateways that
 * were started on one port by mistake would split its connections between them.
 */
export const EXCLUSIVE_PORT = 1;
export const portTaken = (host, port, setting = '') => new Error(`cannot listen on ${host}:${port}${setting}: the port is taken`);
/**
 * Rejects when any process listens on the port, even one that would share it. The supervisor asks this before it starts workers
 * that share the port.
 */
export function refuseTakenPort({ uws }, host, port) {
    return new Promise((resolve, reject) => {
        uws.App().listen(host, port, EXCLUSIVE_PORT, (socket) => {
            if (socket === false) {
                reject(portTaken(host, port));
                return;
            }
            uws.us_listen_socket_close(socket);
            resolve();
        });
    });
}
//# sourceMappingURL=port.js.map