import { existsSync } from 'node:fs';
import { ANY_QUERY } from '../http/route.js';
import { RETRY_AFTER } from '../openapi/headers.js';
import { json, record } from '../openapi/schemas.js';
const HEALTH = record('Health', { status: { type: 'string', const: 'ok' } });
const READINESS = record('Readiness', { status: { type: 'string', enum: ['ready', 'starting', 'not ready'] } });
/** `/healthz`: the process is up. `/readyz`: it can serve. Neither takes a token, so both answer whatever else is broken. */
export function healthRoutes({ isReady, readyFile }) {
    let isAnnounced = readyFile === null;
    const readiness = () => {
        if (!isReady())
            return 'not ready';
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
//# sourceMappingURL=health.js.map