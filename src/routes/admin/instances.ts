import type { ApiResponse, Route } from '../../http/route.ts';
import { COUNT, json, list, orNull, record, TEXT } from '../../openapi/schemas.ts';
import { FIRST_REPORTS_MS, type Looks } from '../../traffic/looks.ts';
import type { Report } from '../../traffic/report.ts';
import { PROCESS_EXAMPLE, PROCESS_FIELDS, processJson } from './processes.ts';

const LEASE_AGE = {
  type: ['number', 'null'],
  minimum: 0,
  description: 'Seconds since its lease was renewed. Null without one: a gateway leases from its first call on',
} as const;
const INSTANCES = record('Instances', {
  instances: list(
    record('Instance', {
      role: { type: 'string', enum: ['gateway', 'writer'] },
      ...PROCESS_FIELDS,
      lease_age_seconds: LEASE_AGE,
      shards: {
        ...orNull(COUNT),
        description: 'Of a writer: the shards whose usage it stores; 0 if it waits for another',
      },
    }),
    'Processes that report: gateways, then writers',
  ),
  silent: list(
    record('SilentInstance', { instance: TEXT, lease_age_seconds: { ...LEASE_AGE, type: 'number' } }),
    'Gateways that have a lease and do not report: dead, hung, of a version that does not report, or not told to while Postgres is away. The leases of dead gateways expire by themselves',
  ),
  shards: { ...COUNT, description: 'Shards that need a writer' },
});
const INSTANCES_EXAMPLE = {
  instances: [{ role: 'gateway', ...PROCESS_EXAMPLE, lease_age_seconds: 1.2, shards: null }],
  silent: [{ instance: 'a3b9c7d2-0d4e-4f5a-8b6c-7d8e9f0a1b2c', lease_age_seconds: 42 }],
  shards: 16,
};

type InstancesDeps = {
  readonly looks: Pick<Looks, 'look' | 'read'>;
  /** Age of leases in milliseconds, by instance. */
  readonly leaseAges: () => Promise<ReadonlyMap<string, number>>;
  readonly shards: number;
};

/** `GET /admin/instances`: the living processes, and their versions. */
export function instancesRoutes(deps: InstancesDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/instances',
      summary: 'Gateways and writers that live: machine, process, version, age of the lease, shards',
      access: ['admin'],
      csvRows: 'instances',
      responses: { 200: json('The processes', INSTANCES, INSTANCES_EXAMPLE) },
      handle: () => listInstances(deps),
    },
  ];
}

async function listInstances({ looks, leaseAges, shards }: InstancesDeps): Promise<ApiResponse> {
  await looks.look(FIRST_REPORTS_MS);
  const [reports, ages] = await Promise.all([looks.read(), leaseAges()]);
  const reporting = new Set(reports.map(({ instance }) => instance));
  const silent = [...ages].filter(([instance]) => !reporting.has(instance));
  return {
    status: 200,
    body: {
      instances: reports.map((report) => instanceJson(report, ages.get(report.instance))),
      silent: silent.map(([instance, age]) => ({ instance, lease_age_seconds: seconds(age) })),
      shards,
    },
  };
}

const instanceJson = (report: Report, leaseAgeMs: number | undefined): Record<string, unknown> => ({
  role: report.role,
  ...processJson(report),
  lease_age_seconds: leaseAgeMs === undefined ? null : seconds(leaseAgeMs),
  shards: report.shards,
});

const seconds = (ms: number): number => Math.round(ms / 100) / 10;
