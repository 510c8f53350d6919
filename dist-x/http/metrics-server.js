import { EXCLUSIVE_PORT, portTaken } from './port.js';
/** Serves `GET /metrics` on a port of its own, which must not be reachable from outside. @returns a function that closes it */
export function serveMetrics(loaded, host, port, page) {
    const app = loaded.uws.App();
    app.get('/metrics', (response) => {
        let gone = false;
        response.onAborted(() => {
            gone = true;
        });
        page.render().then((text) => {
            if (gone)
                return;
            response.cork(() => response.writeHeader('Content-Type', page.contentType).end(text));
        }, () => {
            if (!gone)
                response.cork(() => response.writeStatus('500 Internal Server Error').end('metrics failed\n'));
        });
    });
    app.any('/*', (response) => {
        response.writeStatus('404 Not Found').end();
    });
    return new Promise((resolve, reject) => {
        app.listen(host, port, EXCLUSIVE_PORT, (socket) => {
            if (socket === false)
                reject(portTaken(host, port, ' (METRICS_PORT)'));
            else
                resolve(() => app.close());
        });
    });
}
//# sourceMappingURL=metrics-server.js.map