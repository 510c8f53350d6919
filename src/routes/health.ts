import type { Route } from '../http/route.ts';

/** `/healthz`: the process is up. `/readyz`: it can serve. Neither takes a token: they must answer whatever else is broken. */
export function healthRoutes({ isReady }: { readonly isReady: () => boolean }): Route[] {
  return [
    {
      method: 'GET',
      path: '/healthz',
      summary: 'Whether the process is up',
      access: 'anyone',
      unmetered: true,
      handle: async () => ({ status: 200, body: { status: 'ok' } }),
    },
    {
      method: 'GET',
      path: '/readyz',
      summary: 'Whether this gateway can serve: Redis reachable, catalog loaded, not draining',
      access: 'anyone',
      unmetered: true,
      handle: async () =>
        isReady()
          ? { status: 200, body: { status: 'ready' } }
          : { status: 503, body: { status: 'not ready' }, headers: { 'Retry-After': '1' } },
    },
  ];
}
