import { hostname } from 'node:os';
import process from 'node:process';
import { VERSION } from '../version.ts';
import type { ProcessName } from './report.ts';

/** The name of this process. @param instance  new at each start */
export const nameOf = (role: ProcessName['role'], instance: string, worker: number | null): ProcessName => ({
  instance,
  role,
  worker,
  host: hostname(),
  pid: process.pid,
  version: VERSION,
  startedAtMs: Math.round(Date.now() - process.uptime() * 1_000),
});
