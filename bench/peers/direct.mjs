// @ts-check
import { nothingWatched } from './peer.mjs';

/**
 * No proxy at all: shows what the service and the load generator can do.
 * @type {import('./peer.mjs').PeerKind}
 */
export const direct = {
  title: 'direct, no proxy',
  missing: () => null,
  start: async (stage) => {
    const { port } = await stage.upstream();
    const watched = nothingWatched();
    return { name: 'direct', host: '127.0.0.1', port, prefix: '/', authFiles: null, watched, settled: async () => {} };
  },
};
