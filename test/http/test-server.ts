import type { CallerEvents } from '../../src/gate/caller-io.ts';
import { HttpServer, type ServerOptions } from '../../src/http/server.ts';
import { loadUws } from '../../src/http/uws.ts';
import { QUIET } from '../support/store.ts';

export const noEvents: CallerEvents = { onCallerBody() {}, onCallerGone() {}, onCallerWritable() {} };

/** An HTTP edge that treats every request as a call. Its listen() picks a free port. */
export function newServer(options: Partial<ServerOptions> & Pick<ServerOptions, 'onCall'>): HttpServer {
  return new HttpServer({
    uws: loadUws(process.env),
    host: '127.0.0.1',
    port: 0,
    trustedProxyHops: 0,
    idleCallerSeconds: 60,
    maxRequestBodyBytes: 1_048_576,
    isCall: () => true,
    onRequest: () => {},
    onPreflight: () => {},
    log: QUIET,
    ...options,
  });
}
