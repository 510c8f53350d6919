import { existsSync } from 'node:fs';
import { ANY_QUERY, type Route } from '../http/route.ts';
import { RETRY_AFTER } from '../openapi/headers.ts';
import { json, record } from '../openapi/schemas.ts';

type HealthRoutesDeps = {
  readonly isReady: () => boolean;
  /**
   * `npm start` creates this file once everything else it starts is usable too, such as the demo; until then `/readyz` answers
   * 503. Once seen, the file is not checked again: `npm start` removes it only when it stops everything. Null: there is no file to
   * wait for.
   */
  readonly readyFile: string | null;
};

const HEALTH = record('Health', { status: { type: 'string', const: 'ok' } });
const READINESS = record('Readiness', { status: { type: 'string', enum: ['ready', 'starting', 'not ready'] } });

/** `/healthz`: the process is up. `/readyz`: it can serve. Neither takes a token, so both answer whatever else is broken. */
export function healthRoutes({ isReady, readyFile }: HealthRoutesDeps): Route[] {
  let isAnnounced = readyFile === null;
  const readiness = (): 'ready' | 'starting' | 'not ready' => {
    if (!isReady()) return 'not ready';
    isAnnounced ||= readyFile !== null && existsSync(readyFile);
    return isAnnounced ? 'ready' : 'starting';
  };
  return [
    {
      method: 'GET',
      path: '/healthz',
      summary: 'Whether the process is up',
      access: 'anyone',
      query: ANY_QUERY,
      unmetered: true,
      responses: { 200: json('The process is up', HEALTH, { status: 'ok' }) },
      handle: async () => ({ status: 200, body: { status: 'ok' } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      summary: 'Whether this gateway can serve: Redis reachable, catalog loaded, not draining',
      access: 'anyone',
      query: ANY_QUERY,
      unmetered: true,
      responses: {
        200: json('It can serve', READINESS, { status: 'ready' }),
        503: json('It cannot serve now', READINESS, { status: 'not ready' }, { 'Retry-After': RETRY_AFTER }),
      },
      handle: async () => {
        const status = readiness();
        return status === 'ready'
          ? { status: 200, body: { status } }
          : { status: 503, body: { status }, headers: { 'Retry-After': '1' } };
      },
    },
  ];
}
