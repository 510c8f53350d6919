import { expect, it } from 'vitest';
import { attention } from '../../web/src/console/admin/attention.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');
const sums = { calls: 0, free_calls: 0, succeeded: 0, charged: 0, refunded: 0, fees: 0 };
const good = {
  accounts: { active: 1, suspended: 0, closed: 0 },
  keys: { active: 1, revoked: 0 },
  services: { active: 1, paused: 0, removed: 0 },
  calls: { today: sums, last_24_hours: sums, last_30_days: sums },
  backlog: 3,
  rejected_events: 0,
  held: 0,
  drift: 0,
  drifting_accounts: 0,
  carried: 0,
  shards_not_compared: 0,
  reconciled_at: '2026-11-22T11:59:30Z',
  currency: 'USD' as const,
};
const process = {
  instance: 'a',
  worker: null,
  host: 'a',
  pid: 1,
  version: '1.0.0',
  started_at: '2026-11-22T11:00:00Z',
  uptime_seconds: 1,
  memory_bytes: 1,
  cpu: 0,
  event_loop_delay_ms: 0,
  lease_age_seconds: null,
};
const writer = { ...process, role: 'writer' as const, shards: 16 };
const well = { instances: [writer], silent: [], shards: 16 };
const signs = (stats: typeof good, instances: Parameters<typeof attention>[1] = well): string[] =>
  attention(stats, instances, NOW, (value) => `$${value}`).map(({ sign }) => sign);

it('nothing needs attention if all is well, even before the instances are known', () => {
  expect(signs(good)).toEqual([]);
  expect(signs(good, null)).toEqual([]);
});

it('money problems come first, and mere information comes last', () => {
  const bad = {
    ...good,
    drift: -0.5,
    drifting_accounts: 1,
    rejected_events: 2,
    backlog: 50_000,
    reconciled_at: '2026-11-22T11:00:00Z',
  };
  expect(signs({ ...bad, accounts: { active: 1, suspended: 1, closed: 0 } })).toEqual([
    'Drift',
    'Rejected',
    'Backlog',
    'Late',
    'Suspended',
  ]);
  expect(signs({ ...good, reconciled_at: null as unknown as string })).toEqual(['Not compared']);
});

it('a shard without a writer, a running but silent gateway, and two different versions need attention', () => {
  const old = { ...writer, version: '0.9.0', shards: 0 };
  const silent = [
    { instance: 'hangs', lease_age_seconds: 2 },
    { instance: 'ended', lease_age_seconds: 60 },
  ];
  expect(signs(good, { instances: [{ ...writer, shards: 15 }, old], silent, shards: 16 })).toEqual([
    'No writer',
    'Silent',
    'Versions',
  ]);
});

it('drifts that cancel out, and shards that were not compared, need attention', () => {
  expect(signs({ ...good, drifting_accounts: 2 })).toEqual(['Drift']);
  expect(signs({ ...good, shards_not_compared: 1 })).toEqual(['Not compared']);
});
