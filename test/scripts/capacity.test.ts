import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { COSTS, FULL, gatewayMicros, plan } from '../../scripts/capacity/plan.mjs';
import { loadConfig } from '../../src/config/config.ts';

const load = { latencyMs: 500, keepDays: 400 };
const planOf = (callsPerSecond: number) => plan({ ...load, callsPerSecond });
const needs = (callsPerSecond: number, part: string): string | undefined =>
  planOf(callsPerSecond).lines.find((line) => line.part === part)?.needs;
/** Different rates differ by more than the last bit, which is the error of sums of doubles. */
const rates = fc.integer({ min: 1_000, max: 200_000_000 }).map((thousandths) => thousandths / 1_000);

describe('the capacity of a load', () => {
  it('uses measured costs, each of which is in the documentation', () => {
    const pages = ['docs/performance.md', 'docs/scaling.md'].map((page) => readFileSync(page, 'utf8')).join('\n');
    for (const [name, { source }] of Object.entries(COSTS))
      expect([name, pages.includes(source)]).toEqual([name, true]);
  });

  it('for 20 000 calls/s', () => {
    expect(planOf(20_000)).toMatchObject({ step: 'several workers', gateways: 2, redisNodes: 1, isBeyond: false });
    expect(needs(20_000, 'gateways')).toBe('1.17 cores in use by 2 processes');
    expect(needs(20_000, 'Redis')).toBe('0.50 cores in use of 1 master; 19 MB/s written to the append-only file');
    expect(needs(20_000, 'writer')).toBe('0.22 cores in use');
    expect(needs(20_000, 'Postgres')).toBe('0.32 cores in use; 1.2 TB of WAL a day');
    expect(needs(20_000, 'disk of Postgres')).toContain('655 GB a day for calls, 262 TB in 400 days');
    expect(needs(20_000, 'open calls')).toBe('10 000 at once, 5 000 a gateway, each with two sockets');
    expect(needs(20_000, 'connections')).toBe('up to 36 to Postgres, 6 to Redis');
    expect(needs(20_000, 'without Postgres')).toContain('4 minutes until calls are refused, and 1.3 GB');
  });

  it('takes one process, then workers, then a cluster, then more than was measured', () => {
    expect(planOf(1_000).step).toBe('one process of each kind');
    expect(planOf(27_999)).toMatchObject({ step: 'several workers', redisNodes: 1 });
    expect(planOf(28_001)).toMatchObject({ step: 'a Redis cluster', redisNodes: 3 });
    expect(planOf(60_000).isBeyond).toBe(true);
  });

  it('never decreases for more calls, and loads no core beyond the planned level', () => {
    fc.assert(
      fc.property(rates, rates, (a, b) => {
        const [less, more] = [planOf(Math.min(a, b)), planOf(Math.max(a, b))];
        for (const of of ['gateways', 'gatewayCores', 'redisNodes', 'redisCores'] as const)
          expect(more[of]).toBeGreaterThanOrEqual(less[of]);
        expect(more.gatewayCores / more.gateways).toBeLessThanOrEqual(FULL);
        expect(more.redisCores / more.redisNodes).toBeLessThanOrEqual(FULL);
      }),
    );
  });

  it('says up to how many calls a second the gateways are enough', () => {
    const [line] = planOf(20_000).lines;
    const most = Number(/from ([\d ]+) calls/.exec(line?.next ?? '')?.[1]?.replaceAll(' ', ''));
    expect([planOf(most - 1).gateways, planOf(most + 2).gateways]).toEqual([2, 3]);
  });

  it('uses the measured cost of a call at each measured rate, and stays between two neighbouring costs for rates between them', () => {
    expect([100, 1_000, 4_000, 30_000, 90_000].map(gatewayMicros)).toEqual([147, 147, 81, 31, 31]);
    expect(gatewayMicros(2_000)).toBeCloseTo(114, 5);
  });

  it('uses the defaults of the configuration', () => {
    const { maxBacklogEvents, upstreamMaxTotalConnections } = loadConfig({
      DATABASE_URL: 'postgres://127.0.0.1/x',
      REDIS_URL: 'redis://127.0.0.1',
    });
    const words = planOf(20_000)
      .lines.flatMap(({ because, next }) => [because, next])
      .join('\n')
      .replaceAll(/(?<=\d) (?=\d{3})/g, '');
    expect(words).toContain(`MAX_BACKLOG_EVENTS is ${maxBacklogEvents}`);
    expect(words).toContain(`UPSTREAM_MAX_TOTAL_CONNECTIONS, ${upstreamMaxTotalConnections} a gateway`);
  });
});
