/**
 * The HTTP edge as the gate and the proxy see it. src/http implements these types.
 *
 * Tested by test/http/caller-stream.test.ts.
 */
/** The path of every call begins with this; `{service_id}` and the service's own path follow. */
export const PROXY_PREFIX = '/api/v1/proxy/';
/** Pages of other origins get no access to paths that begin with this. */
export const ADMIN_PREFIX = '/api/v1/admin/';
//# sourceMappingURL=caller-io.js.map