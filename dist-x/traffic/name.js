import { hostname } from 'node:os';
import process from 'node:process';
import { VERSION } from '../version.js';
/** The name of this process. @param instance  new at each start */
export const nameOf = (role, instance, worker) => ({
    instance,
    role,
    worker,
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    startedAtMs: Math.round(Date.now() - process.uptime() * 1_000),
});
//# sourceMappingURL=name.js.map