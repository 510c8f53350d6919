import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { portTaken } from './port.ts';

/** The page of metrics that Prometheus reads. */
type MetricsPage = { readonly contentType: string; render(): Promise<string> };

/**
 * Serves `GET /metrics` on a separate port, which must not be reachable from outside. It uses Node's own server: uWebSockets.js
 * wakes a process five times in four seconds, and supervisors and writers have no other use for it (decision 0076).
 *
 * @returns a function that closes it
 */
export function serveMetrics(host: string, port: number, page: MetricsPage): Promise<() => void> {
  const server = createServer((request, response) => void answer(request, response, page));
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? portTaken(host, port, ' (METRICS_PORT)') : error);
    });
    server.listen(port, host, () => {
      resolve(() => {
        server.close();
        server.closeAllConnections();
      });
    });
  });
}

async function answer({ method, url }: IncomingMessage, response: ServerResponse, page: MetricsPage): Promise<void> {
  if (method !== 'GET' || url?.split('?')[0] !== '/metrics') {
    response.writeHead(404).end();
    return;
  }
  try {
    const text = await page.render();
    response.writeHead(200, { 'Content-Type': page.contentType }).end(text);
  } catch {
    response.writeHead(500).end('metrics failed\n');
  }
}
