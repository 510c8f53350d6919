// @ts-check
// How much of each part of an installation a load needs, from measured costs. Pure arithmetic: docs/scaling.md says what it leaves out.

/**
 * A measured cost. `source` is a text of docs/performance.md or docs/scaling.md, which has the measurement.
 * @typedef {{ readonly value: number, readonly source: string }} Cost
 */

/** Of one call, in microseconds of a core, where nothing else is said. */
export const COSTS = {
  gatewayAt1000: { value: 147, source: '147 against 143 µs' },
  gatewayAt4000: { value: 81, source: '81 against 88 µs' },
  gatewayFull: { value: 31, source: '| gateway, 64 to 256 connections | 25 to 31 µs |' },
  redis: { value: 25, source: '| Redis | 17 to 25 µs |' },
  redisInCluster: { value: 68, source: '106, 68 and 53 µs' },
  writerAt1000: { value: 42, source: '| writer at 1 000 and 9 900 calls/s | 42 and 11 µs |' },
  writerAt9900: { value: 11, source: '| writer at 1 000 and 9 900 calls/s | 42 and 11 µs |' },
  writerMaxPerSecond: { value: 72_707, source: '72 707 events/s measured' },
  postgres: { value: 16, source: "16 where every call is another buyer's" },
  callBytes: { value: 379, source: '379 bytes' },
  entryBytes: { value: 134, source: '134 bytes' },
  walBytes: { value: 676, source: '676 bytes' },
  appendOnlyBytes: { value: 950, source: '950 bytes' },
  eventBytes: { value: 259, source: '259 bytes for an event that waits' },
};

/** A core is planned to be this full. Above it waits grow fast; the alert TollgateGatewayBusy comes at 0.8. */
export const FULL = 0.7;
/** Defaults of UPSTREAM_MAX_TOTAL_CONNECTIONS and MAX_BACKLOG_EVENTS, and what one process holds at most (docs/operating.md). */
const MAX_CONNECTIONS = 8_192;
const MAX_BACKLOG = 5_000_000;
const POSTGRES_CONNECTIONS = 12;
const REDIS_CONNECTIONS = 2;

/**
 * @typedef {object} Load
 * @property {number} callsPerSecond in the busiest minutes
 * @property {number} latencyMs of a call, its response included
 * @property {number} keepDays how long calls are kept
 *
 * @typedef {object} Line
 * @property {string} part
 * @property {string} needs
 * @property {string} because the measured cost behind it
 * @property {string} next the next limit, or what to do there
 *
 * @typedef {object} Plan
 * @property {string} step the step of docs/scaling.md
 * @property {number} gateways processes
 * @property {number} gatewayCores in use
 * @property {number} redisNodes masters
 * @property {number} redisCores in use
 * @property {boolean} isBeyond whether a part needs more than was ever measured
 * @property {readonly Line[]} lines
 */

/** @param {Load} load @returns {Plan} */
export function plan(load) {
  const { gateways, gatewayCores } = planGateways(load.callsPerSecond);
  const { redisNodes, redisCores } = planRedis(load.callsPerSecond);
  const isBeyond = load.callsPerSecond > COSTS.writerMaxPerSecond.value * FULL;
  const step = redisNodes > 1 ? 'a Redis cluster' : gateways > 1 ? 'several workers' : 'one process of each kind';
  return {
    step,
    gateways,
    gatewayCores,
    redisNodes,
    redisCores,
    isBeyond,
    lines: [
      ...serving(load, { gateways, gatewayCores }),
      redisLine(load, { redisNodes, redisCores }),
      ...storing(load),
      ...connections(load, gateways),
    ],
  };
}

/** The fewest processes of which none is fuller than FULL. A process that is fuller pays less for a call. @param {number} rate */
function planGateways(rate) {
  let gateways = 1;
  while ((rate / gateways) * gatewayMicros(rate / gateways) > FULL * 1e6) gateways += 1;
  return { gateways, gatewayCores: (rate * gatewayMicros(rate / gateways)) / 1e6 };
}

/** What a call costs a gateway process. @param {number} rate calls a second */
export const gatewayMicros = (rate) =>
  between(rate, [
    [1_000, COSTS.gatewayAt1000.value],
    [4_000, COSTS.gatewayAt4000.value],
    [30_000, COSTS.gatewayFull.value],
  ]);

/** @param {number} rate */
function planRedis(rate) {
  const alone = (rate * COSTS.redis.value) / 1e6;
  if (alone <= FULL) return { redisNodes: 1, redisCores: alone };
  const redisCores = (rate * COSTS.redisInCluster.value) / 1e6;
  return { redisNodes: Math.max(3, Math.ceil(redisCores / FULL)), redisCores };
}

/**
 * The value at `x` between measured points, by the logarithm of `x`; outside of them, that of the nearest.
 * @param {number} x @param {readonly (readonly [x: number, y: number])[]} points ascending
 */
function between(x, points) {
  const above = points.findIndex(([at]) => at >= x);
  if (above <= 0) return /** @type {[number, number]} */ (points.at(above === 0 ? 0 : -1))[1];
  const [[x0, y0], [x1, y1]] = /** @type {[[number, number], [number, number]]} */ (
    /** @type {unknown} */ (points.slice(above - 1, above + 1))
  );
  return y0 + ((y1 - y0) * Math.log(x / x0)) / Math.log(x1 / x0);
}

/** @param {Load} load @param {{ gateways: number, gatewayCores: number }} planned @returns {Line[]} */
function serving({ callsPerSecond }, { gateways, gatewayCores }) {
  const micros = gatewayMicros(callsPerSecond / gateways);
  return [
    {
      part: 'gateways',
      needs: `${cores(gatewayCores)} in use by ${count(gateways, 'process', 'processes')}`,
      because: `${micros.toFixed(0)} µs a call at ${whole(callsPerSecond / gateways)} calls/s each`,
      next: `${count(gateways + 1, 'process', 'processes')} from ${whole(mostFor(gateways))} calls/s (WORKERS, then machines)`,
    },
  ];
}

/** The most calls a second for which this many gateways are enough, by halving. @param {number} gateways */
function mostFor(gateways) {
  let [low, high] = [0, gateways * 40_000];
  while (high - low > 1) {
    const middle = (low + high) / 2;
    if (planGateways(middle).gateways > gateways) high = middle;
    else low = middle;
  }
  return low;
}

/** @param {Load} load @param {{ redisNodes: number, redisCores: number }} planned @returns {Line} */
function redisLine({ callsPerSecond }, { redisNodes, redisCores }) {
  const appended = callsPerSecond * COSTS.appendOnlyBytes.value;
  const cost = redisNodes === 1 ? COSTS.redis : COSTS.redisInCluster;
  const most = redisNodes === 1 ? (FULL * 1e6) / COSTS.redis.value : (redisNodes * FULL * 1e6) / cost.value;
  return {
    part: 'Redis',
    needs:
      `${cores(redisCores)} in use of ${count(redisNodes, 'master', 'masters')}; ` +
      `${bytes(appended)}/s written to the append-only file`,
    because: `${cost.value} µs and ${COSTS.appendOnlyBytes.value} bytes appended a call`,
    next:
      redisNodes === 1
        ? `a cluster from ${whole(most)} calls/s, at ${COSTS.redisInCluster.value} µs a call instead`
        : `${redisNodes + 1} masters from ${whole(most)} calls/s`,
  };
}

/** @param {Load} load @returns {Line[]} */
function storing({ callsPerSecond, keepDays }) {
  const writer = between(callsPerSecond, [
    [1_000, COSTS.writerAt1000.value],
    [9_900, COSTS.writerAt9900.value],
  ]);
  const perDay = callsPerSecond * 86_400;
  const calls = perDay * COSTS.callBytes.value;
  const writerMax = COSTS.writerMaxPerSecond.value;
  return [
    {
      part: 'writer',
      needs: `${cores((callsPerSecond * writer) / 1e6)} in use`,
      because: `${writer.toFixed(0)} µs a call; one writer stored ${whole(writerMax)} events/s`,
      next: `${whole(writerMax * FULL)} calls/s: more was not measured`,
    },
    {
      part: 'Postgres',
      needs: `${cores((callsPerSecond * COSTS.postgres.value) / 1e6)} in use; ${bytes(perDay * COSTS.walBytes.value)} of WAL a day`,
      because: `${COSTS.postgres.value} µs and ${COSTS.walBytes.value} bytes of WAL a call`,
      next: `the writer's limit; then a database for each group of accounts`,
    },
    {
      part: 'disk of Postgres',
      needs:
        `${bytes(calls)} a day for calls, ${bytes(calls * keepDays)} in ${keepDays} days; ` +
        `at most ${bytes(perDay * COSTS.entryBytes.value)} a day for the journal, which stays`,
      because: `${COSTS.callBytes.value} bytes a call with its indexes, ${COSTS.entryBytes.value} an entry`,
      next: 'calls of the busiest minutes all day: real days have fewer. Keep fewer days, or buy disk',
    },
    {
      part: 'without Postgres',
      needs:
        `${whole(MAX_BACKLOG / callsPerSecond / 60)} minutes until calls are refused, ` +
        `and ${bytes(MAX_BACKLOG * COSTS.eventBytes.value)} of the memory of Redis by then`,
      because: `${COSTS.eventBytes.value} bytes an event that waits; MAX_BACKLOG_EVENTS is ${whole(MAX_BACKLOG)}`,
      next: 'raise it, with the memory of Redis',
    },
  ];
}

/** @param {Load} load @param {number} gateways @returns {Line[]} */
function connections({ callsPerSecond, latencyMs }, gateways) {
  const open = (callsPerSecond * latencyMs) / 1_000;
  const each = Math.ceil(open / gateways);
  const postgres = POSTGRES_CONNECTIONS * (gateways + 1);
  return [
    {
      part: 'open calls',
      needs: `${whole(open)} at once, ${whole(each)} a gateway, each with two sockets`,
      because: `${latencyMs} ms a call (--latency-ms)`,
      next:
        each > MAX_CONNECTIONS
          ? `beyond UPSTREAM_MAX_TOTAL_CONNECTIONS (${whole(MAX_CONNECTIONS)}): raise it, or add gateways`
          : `UPSTREAM_MAX_TOTAL_CONNECTIONS, ${whole(MAX_CONNECTIONS)} a gateway`,
    },
    {
      part: 'connections',
      needs: `up to ${postgres} to Postgres, ${REDIS_CONNECTIONS * (gateways + 1)} to Redis`,
      because: `up to ${POSTGRES_CONNECTIONS} and ${REDIS_CONNECTIONS} a process, gateways and a writer`,
      next: postgres > 97 ? 'beyond max_connections = 100 of Postgres: raise it' : 'max_connections = 100 of Postgres',
    },
  ];
}

/** @param {number} value */
const whole = (value) => Math.floor(value).toLocaleString('en-US').replaceAll(',', ' ');
/** @param {number} value */
const cores = (value) => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} cores`;
/** @param {number} value @param {string} one @param {string} many */
const count = (value, one, many) => `${value} ${value === 1 ? one : many}`;

/** @param {number} value */
function bytes(value) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  const scaled = value / 1_000 ** power;
  return `${scaled < 10 ? scaled.toFixed(1) : scaled.toFixed(0)} ${units[power]}`;
}
