import type { Metrics } from '../observability/metrics.ts';
import type { LoadedUws } from './uws.ts';

/** Serves `GET /metrics` on a port of its own, which stays inside. @returns a function that closes it */
export function serveMetrics(loaded: LoadedUws, host: string, port: number, metrics: Metrics): Promise<() => void> {
  const app = loaded.uws.App();
  app.get('/metrics', (response) => {
    let gone = false;
    response.onAborted(() => {
      gone = true;
    });
    metrics.render().then(
      (text) => {
        if (gone) return;
        response.cork(() => response.writeHeader('Content-Type', metrics.contentType).end(text));
      },
      () => {
        if (!gone) response.cork(() => response.writeStatus('500 Internal Server Error').end('metrics failed\n'));
      },
    );
  });
  app.any('/*', (response) => {
    response.writeStatus('404 Not Found').end();
  });
  return new Promise((resolve, reject) => {
    (app as unknown as ListenExclusively).listen(host, port, 1, (socket) => {
      if (socket === false) reject(new Error(`cannot listen on ${host}:${port} (METRICS_PORT): the port is taken`));
      else resolve(() => app.close());
    });
  });
}

type ListenExclusively = {
  listen(host: string, port: number, options: number, callback: (socket: unknown) => void): void;
};
