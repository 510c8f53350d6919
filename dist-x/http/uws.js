import { createRequire } from 'node:module';
import { StartRefused } from '../platform/start-refused.js';
/** Maximum request head; the addon refuses a longer one. The addon reads this from the environment only once, when it loads. */
const MAX_REQUEST_HEAD_BYTES = 16_384;
/** The first major version of Node for which the current release of the addon has a binary. */
const FIRST_NODE_OF_CURRENT = 22;
/**
 * Loads uWebSockets.js: the current release where its binary loads (Node 22+, glibc ≥ 2.38), an older release elsewhere.
 * The gateway uses only what both releases offer. No other folder imports the addon.
 *
 * @param env  the environment of the process, from which the addon reads its settings
 */
export function loadUws(env) {
    env.UWS_HTTP_MAX_HEADERS_SIZE = String(MAX_REQUEST_HEAD_BYTES);
    const require = createRequire(import.meta.url);
    // The current release has no binary for older Node. Its loader looks for a binary by the version of Node, and would load the
    // binary that npm installed for the older release.
    if (Number.parseInt(process.versions.node, 10) < FIRST_NODE_OF_CURRENT) {
        return legacy(require, `Node ${process.versions.node} is older than ${FIRST_NODE_OF_CURRENT}`);
    }
    try {
        return { uws: require('uws-current'), variant: 'current' };
    }
    catch (error) {
        return legacy(require, firstLineOf(error));
    }
}
/** @param reason  why it is not the current release */
function legacy(require, reason) {
    try {
        return { uws: require('uws-legacy'), variant: 'legacy', reason };
    }
    catch (error) {
        const message = `uWebSockets.js has no release for Node ${process.versions.node} on this system (docs/dependencies.md, 'Node 20')`;
        throw new StartRefused(`${message}: current: ${reason}; legacy: ${firstLineOf(error)}`, { cause: error });
    }
}
const firstLineOf = (error) => error instanceof Error ? error.message.split('\n')[0] : String(error);
//# sourceMappingURL=uws.js.map