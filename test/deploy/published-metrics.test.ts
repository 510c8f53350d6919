// What the alert rules, the dashboard, the glossary and the runbooks name is there in a running Tollgate.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { echo, startService, type TestService } from '../integration/marketplace.ts';
import { WorkerStack } from '../integration/worker-stack.ts';
import { buildSources } from '../support/build.ts';
import { type ClusterNode, type RunningCluster, startTestCluster } from '../support/cluster.ts';
import { until } from '../support/wait.ts';
import { metricsOf, queriesOf, readDashboards, readRules, runbookCommands, runbookNames } from './watched.ts';

let stack: WorkerStack;
let service: TestService;
/** A node of a cluster, for the commands that a single Redis does not know. */
let cluster: RunningCluster;
/** The page of metrics of a supervisor, its gateway and its writer, after a few calls. */
let page: string;
/** Names of metrics with their types. */
let types: ReadonlyMap<string, string>;

const metricsPage = async (): Promise<string> =>
  (await fetch(`http://127.0.0.1:${stack.env.METRICS_PORT}/metrics`)).text();

const count = (name: string): number => Number(new RegExp(`^${name}\\{worker="1"\\} (\\S+)$`, 'm').exec(page)?.[1]);

beforeAll(async () => {
  [stack, cluster] = await Promise.all([
    WorkerStack.start(buildSources(), { WORKERS: '' }),
    startTestCluster({ masters: 2, replicas: 0 }),
  ]);
  service = await startService((request, response) => {
    if (request.url === '/fails') response.writeHead(500).end();
    else void echo(request, response);
  });
  const path = await stack.service({ endpoint: service.url, price: 1 });
  const key = await stack.buyer(2);
  // Charged, refunded, and rejected, because the money is not enough.
  for (const url of [`${path}/`, `${path}/fails`, `${path}/`, `${path}/`])
    await (await stack.request(url, { key })).text();
  await until(async () => {
    page = await metricsPage();
    return (
      count('tollgate_calls_open') === 0 &&
      [/^tollgate_listing_secrets\{/m, /^tollgate_redis_node_replicas\{/m].every((last) => last.test(page))
    );
  });
  types = new Map(Array.from(page.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = '', type = '']) => [name, type]));
});
afterAll(async () => {
  await stack.stop();
  await service.close();
  await cluster.stop();
});

/** Whether the processes publish this series. Two are Prometheus' own. */
function isPublished(series: string): boolean {
  if (series === 'up' || series === 'ALERTS') return true;
  const base = series.replace(/_(bucket|sum|count)$/, '');
  return base === series
    ? types.has(series) && types.get(series) !== 'histogram'
    : types.has(series) || /^(histogram|summary)$/.test(types.get(base) ?? '');
}

describe('each metric that is named by', () => {
  it('an alert rule is published', () => {
    const unknown = readRules().flatMap(({ alert, expr }) =>
      metricsOf(expr)
        .filter((name) => !isPublished(name))
        .map((name) => `${alert}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });

  it('a query of the dashboard is published', () => {
    const named = readDashboards().flatMap(queriesOf).flatMap(metricsOf);
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((name) => !isPublished(name))).toEqual([]);
  });

  it('the glossary is published, and all our published metrics are in the glossary', () => {
    const ours = [...types.keys()].filter((name) => name.startsWith('tollgate_'));
    expect([...glossaryMetrics()].sort()).toEqual(ours.sort());
  });
});

/**
 * The metrics in the first column of the glossary's table. An ending, such as `_completed_total`, stands for a metric that begins
 * like the first one of its cell.
 */
function glossaryMetrics(): ReadonlySet<string> {
  const table = /\n## Metrics\n([\s\S]*)/.exec(readFileSync('docs/glossary.md', 'utf8'))?.[1] ?? '';
  const cells = Array.from(table.matchAll(/^\| (`[^|]*) \|/gm), ([, cell = '']) => cell.match(/(?<=`)\w+/g) ?? []);
  return new Set(cells.flatMap(([first = '', ...others]) => [first, ...others.map((other) => whole(first, other))]));
}

function whole(first: string, other: string): string {
  const isMeant = (name: string): boolean =>
    name.endsWith(other) && name !== other && first.startsWith(name.slice(0, -other.length));
  return other.startsWith('_') ? ([...types.keys()].find(isMeant) ?? other) : other;
}

it('a call is counted once in each histogram, and a rejected call only in the admission histogram', () => {
  const counts = ['admission_', 'service_', ''].map((part) => count(`tollgate_call_${part}seconds_count`));
  expect(counts).toEqual([4, 3, 3]);
  const sums = ['admission_', 'service_', ''].map((part) => count(`tollgate_call_${part}seconds_sum`));
  expect((sums[0] as number) + (sums[1] as number)).toBeGreaterThan(0);
  expect(sums[1]).toBeLessThan(sums[2] as number);
});

describe('the commands of the runbook', () => {
  it.each(runbookNames())('%s work on a running installation', async (name) => {
    for (const command of runbookCommands(name)) await carryOut(command);
  });

  it('are refused when they name something that does not exist', async () => {
    await expect(carryOut('curl -sS "$METRICS" | grep \'^tollgate_gone\'')).rejects.toThrow();
    await expect(carryOut('admin "$API/admin/gone"')).rejects.toThrow();
    await expect(carryOut('psql "$DATABASE_URL" -c "SELECT gone FROM calls"')).rejects.toThrow();
    await expect(carryOut('redis-cli -u "$REDIS_URL" gone')).rejects.toThrow();
    await expect(carryOut('redis-cli -u "$REDIS_URL" cluster gone')).rejects.toThrow();
    await expect(carryOut('rm -rf /')).rejects.toThrow();
  });
});

/** Does what a line of a runbook does, without the programs that it names: CI need not have psql, redis-cli and jq. */
async function carryOut(command: string): Promise<void> {
  const [, , grep] = /^curl -sS "\$METRICS" \| grep (-E )?'(.*)'$/.exec(command) ?? [];
  if (grep !== undefined) {
    // Each of the alternatives, not only one of them.
    for (const pattern of alternatives(grep)) expect(page, command).toMatch(new RegExp(pattern, 'm'));
    return;
  }
  const [, path] = /^admin "\$API(\/\S+)"( \| jq '.*')?$/.exec(command) ?? [];
  const [, sql] = /^psql "\$DATABASE_URL" -c "([^"]*)"$/.exec(command) ?? [];
  const [, words] = /^redis-cli -u "\$REDIS_URL" ([\w '{:}-]+)$/.exec(command) ?? [];
  if (path !== undefined) await stack.json(`/api/v1${path}`, { key: stack.admin });
  else if (sql !== undefined) await stack.stores.sql.unsafe(sql);
  else if (words !== undefined) {
    const [first = '', ...rest] = words.replaceAll("'", '').split(' ');
    if (first === 'cluster') expect(await cluster.ask(cluster.nodes[0] as ClusterNode, words)).not.toMatch(/^-/m);
    else {
      // A cluster's node is connected to when its shard is first asked for.
      const node = stack.stores.redis.shard(0);
      await until(() => node.ready);
      await node.command(first, rest);
    }
  } else if (command === 'curl -sS "$GATEWAY/readyz"') expect((await stack.request('/readyz')).status).toBe(200);
  else expect(command).toBe('curl -sS "$METRICS" | head -3');
}

/** `^a_(b|c)` as `^a_b` and `^a_c`. */
function alternatives(pattern: string): readonly string[] {
  const [, before = '', inner, after = ''] = /^([^(]*)\(([^()]*)\)(.*)$/.exec(pattern) ?? [];
  return inner === undefined ? [pattern] : inner.split('|').flatMap((one) => alternatives(before + one + after));
}
