import { COUNT, EXAMPLE, orNull, TEXT, TIME } from '../../openapi/schemas.ts';
import type { Report } from '../../traffic/report.ts';

// What the live traffic and the list of instances say about every process.

export const PROCESS_FIELDS = {
  instance: { ...TEXT, description: 'New at each start. Of a gateway: the name of its leases and holds in Redis' },
  worker: { ...orNull(COUNT), description: 'Of a gateway: its number among those of its port, from 1' },
  host: { ...TEXT, description: 'Name of the machine or container' },
  pid: COUNT,
  version: TEXT,
  started_at: TIME,
  uptime_seconds: COUNT,
  memory_bytes: { ...COUNT, description: 'Resident memory' },
  cpu: { type: ['number', 'null'], minimum: 0, description: 'Cores in use in the last second; null in the first one' },
  event_loop_delay_ms: {
    type: 'number',
    minimum: 0,
    description: 'Largest delay of the event loop in the last second',
  },
};

export const PROCESS_EXAMPLE = {
  instance: '6f1c9e0a-5a0b-4a52-9a53-3c0f5ad2b0b1',
  worker: 1,
  host: 'gateway-1',
  pid: 4711,
  version: '0.1.0',
  started_at: EXAMPLE.time,
  uptime_seconds: 3600,
  memory_bytes: 120_000_000,
  cpu: 0.2,
  event_loop_delay_ms: 1.5,
};

export function processJson({
  instance,
  worker,
  host,
  pid,
  version,
  startedAtMs,
  load,
}: Report): Record<string, unknown> {
  return {
    instance,
    worker,
    host,
    pid,
    version,
    started_at: new Date(startedAtMs).toISOString(),
    uptime_seconds: Math.max(0, Math.round((Date.now() - startedAtMs) / 1_000)),
    memory_bytes: load.memoryBytes,
    cpu: load.cpu,
    event_loop_delay_ms: load.loopDelayMs,
  };
}
