// @ts-check
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import postgres from 'postgres';
import { alternate, alternateSeconds } from '../measure/rounds.mjs';
import { callColumns, toRows } from '../report/summary.mjs';

export const question =
  'What does it cost to answer /discover anonymously over 100, 10 000 and 100 000 services, and how long is the event loop held?';

export const defaults = { connections: [16], seconds: 4, rounds: 1 };

const sizes = [100, 10_000, 100_000];
const changesPerSecond = 10;
/** So few for the list of all, which has 46 MB at 100 000 services, that answers are complete within a measurement. */
const connectionsForAll = 2;

const kinds = [
  { what: 'a page', query: '' },
  { what: 'a filtered page', query: '?category=data&max_price=0.005&limit=20' },
  { what: 'a search', query: '?q=translat&limit=20' },
  { what: 'all', query: '?limit=all' },
  { what: `a search, ${changesPerSecond} changes/s`, query: '?q=translat&limit=20', changes: true },
];

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, sizes.length * kinds.length);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const samples = [];
  const notes = [];
  for (const services of sizes) {
    const [suffix, loopDelayFile] = [`-${services}`, bench.stage.file(`loop-delay-${services}`)];
    const startedAt = performance.now();
    const [peer] = await bench.peers(['tollgate'], { keySets: {}, services, suffix, loopDelayFile });
    if (peer === undefined) break;
    const startSeconds = (performance.now() - startedAt) / 1000;
    /** @type {string[]} */
    const holds = [];
    for (const { what, query, changes = false } of kinds) {
      const from = Date.now();
      const changing = changes ? await changeServices(bench.stage, services) : null;
      const contestants = [
        { peer, variant: `${services}: ${what}`, load: { rawPath: `/api/v1/discover${query}`, keySet: null } },
      ];
      samples.push(
        ...(await alternate(bench, {
          contestants,
          connections: what === 'all' ? [connectionsForAll] : bench.options.connections,
        })),
      );
      await changing?.end();
      holds.push(`${what} ${longestHold(loopDelayFile, from).toFixed(1)}`);
    }
    notes.push(
      `${services} services: inserted and started in ${startSeconds.toFixed(1)} s; event loop held for at most, in ms: ${holds.join('; ')}`,
    );
  }
  return { columns: callColumns, rows: toRows(samples), bars: [], samples, notes };
}

/** The longest hold since `from`, in milliseconds. @param {string} file @param {number} from */
function longestHold(file, from) {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  const holds = lines.map((line) => line.split(' ').map(Number)).filter(([at = 0]) => at > from + 250);
  return Math.max(0, ...holds.map(([, ms = 0]) => ms));
}

/** Changes one service after the other until `end`. @param {import('../stage/stage.mjs').Stage} stage @param {number} services */
async function changeServices(stage, services) {
  const { url } = await stage.database(`bench_tollgate_${services}`);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  const ending = new AbortController();
  const changing = (async () => {
    while (!ending.signal.aborted) {
      await sql`
        WITH changed AS (
          UPDATE services SET price = price + 1, updated_at = clock_timestamp()
          WHERE id = (SELECT id FROM services WHERE id > gen_random_uuid() LIMIT 1) RETURNING id)
        SELECT pg_notify('tollgate_services', id::text) FROM changed`;
      await pause(1000 / changesPerSecond);
    }
  })();
  return {
    end: async () => {
      ending.abort();
      await changing;
      await sql.end();
    },
  };
}
