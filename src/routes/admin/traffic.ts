import { unavailableError } from '../../errors.ts';
import { prefers } from '../../http/accept-headers.ts';
import { type ApiRequest, type ApiResponse, BodyInPieces, type Route } from '../../http/route.ts';
import { BUCKETS, quantile } from '../../ledger/rollups/latency-buckets.ts';
import { CACHE_CONTROL, VARY } from '../../openapi/headers.ts';
import { COUNT, EXAMPLE, list, orNull, record, TEXT, TIME, text } from '../../openapi/schemas.ts';
import type { LiveStreams } from '../../traffic/live-streams.ts';
import { FIRST_WINDOW_MS, type Looks } from '../../traffic/looks.ts';
import type { CallCounts, RecentCalls, Report } from '../../traffic/report.ts';
import { PROCESS_EXAMPLE, PROCESS_FIELDS, processJson } from './processes.ts';

const MS = { type: ['number', 'null'], minimum: 0, description: 'Milliseconds; null when no call ended' } as const;
const BY_REASON = { type: 'object', additionalProperties: COUNT } as const;
const COUNTS = {
  admitted: { ...COUNT, description: 'Since the process started, like the other counts' },
  completed: COUNT,
  refunded: { ...BY_REASON, description: 'By reason' },
  refused: { ...BY_REASON, description: 'Calls that were not admitted, by error code' },
  open: { ...COUNT, description: 'Calls under way now' },
};
const RECENT = record(
  'RecentCalls',
  {
    seconds: { type: 'number', description: 'How long this looks back: up to about five seconds' },
    calls: { ...COUNT, description: 'Calls that ended in this time, refunded ones too' },
    calls_per_second: { type: 'number', minimum: 0 },
    p50_ms: MS,
    p99_ms: MS,
  },
  { description: 'Percentiles are right to within 10 %; those below a millisecond are 0.5' },
);
const RECENT_OR_NULL = { ...orNull(RECENT), title: 'RecentCallsOrNull', description: 'Null in the first second' };
const WORKER = record('WorkerTraffic', {
  ...PROCESS_FIELDS,
  calls: record('CallCounts', COUNTS),
  recent: RECENT_OR_NULL,
});
const TRAFFIC = record('Traffic', {
  at: TIME,
  totals: record('TrafficTotals', {
    workers: COUNT,
    open: COUNTS.open,
    calls_per_second: { type: 'number', minimum: 0, description: 'Calls that ended, over all workers' },
    p50_ms: MS,
    p99_ms: MS,
  }),
  workers: list(WORKER, 'Gateways that report, by machine and number'),
});
const CALLS_EXAMPLE = {
  admitted: 1205,
  completed: 1190,
  refunded: { upstream_5xx: 12 },
  refused: { rate_limited: 3 },
  open: 3,
};
const EXAMPLE_TRAFFIC = {
  at: EXAMPLE.time,
  totals: { workers: 1, open: 3, calls_per_second: 42.4, p50_ms: 3.1, p99_ms: 17.2 },
  workers: [
    {
      ...PROCESS_EXAMPLE,
      calls: CALLS_EXAMPLE,
      recent: { seconds: 5, calls: 212, calls_per_second: 42.4, p50_ms: 3.1, p99_ms: 17.2 },
    },
  ],
};
const NO_STORE = { 'Cache-Control': 'no-store', Vary: 'Accept' };

type TrafficDeps = { readonly looks: Pick<Looks, 'look' | 'read'>; readonly streams: LiveStreams };

/** `GET /admin/traffic`: what all gateways do right now. */
export function trafficRoutes(deps: TrafficDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v1/admin/traffic',
      summary: 'What all gateways do now: once, or with `Accept: text/event-stream` as one event a second',
      access: ['admin'],
      requestHeaders: {
        Accept: { description: '`text/event-stream` for a stream', schema: TEXT, example: 'text/event-stream' },
      },
      responses: {
        200: {
          description: 'The traffic',
          headers: { 'Cache-Control': CACHE_CONTROL('no-store'), Vary: VARY('Accept') },
          content: {
            'application/json': { schema: TRAFFIC, example: EXAMPLE_TRAFFIC },
            'text/event-stream': text(
              `event: traffic\ndata: ${JSON.stringify(EXAMPLE_TRAFFIC)}\n\n`,
              'Events `traffic`, whose data are the JSON above; `unavailable` while Redis cannot be asked. Ends after five minutes',
            ),
          },
        },
      },
      handle: (request) => traffic(deps, request),
    },
  ];
}

async function traffic({ looks, streams }: TrafficDeps, { header }: ApiRequest): Promise<ApiResponse> {
  if (prefers(header('accept'), 'text/event-stream', 'application/json')) {
    if (streams.isFull) throw unavailableError(undefined, 'Too many clients are watching this gateway. Please retry.');
    const event = (): Promise<string> => {
      void looks.look();
      return looks.read().then(
        (reports) => `event: traffic\ndata: ${JSON.stringify(trafficJson(reports))}\n\n`,
        () => 'event: unavailable\ndata: {}\n\n',
      );
    };
    return {
      status: 200,
      body: new BodyInPieces(streams.pieces(event)),
      headers: { 'Content-Type': 'text/event-stream', ...NO_STORE },
    };
  }
  await looks.look(FIRST_WINDOW_MS);
  return { status: 200, body: trafficJson(await looks.read()), headers: NO_STORE };
}

export function trafficJson(reports: readonly Report[]): Record<string, unknown> {
  const workers = reports.filter(({ calls }) => calls !== null);
  const recents = workers.flatMap(({ recent }) => recent ?? []);
  return {
    at: new Date().toISOString(),
    totals: {
      workers: workers.length,
      open: workers.reduce((sum, { calls }) => sum + (calls?.open ?? 0), 0),
      calls_per_second: rounded(recents.reduce((sum, recent) => sum + rateOf(recent), 0)),
      ...percentiles(recents),
    },
    workers: workers.map((report) => ({
      ...processJson(report),
      calls: callsJson(report.calls as CallCounts),
      recent: report.recent === null ? null : recentJson(report.recent),
    })),
  };
}

const callsJson = ({ admitted, completed, refunded, refused, open }: CallCounts): Record<string, unknown> => ({
  admitted,
  completed,
  refunded,
  refused,
  open,
});

function recentJson(recent: RecentCalls): Record<string, unknown> {
  const rate = rateOf(recent);
  return {
    seconds: recent.seconds,
    calls: callsOf(recent),
    calls_per_second: rounded(rate),
    ...percentiles([recent]),
  };
}

const callsOf = ({ buckets }: RecentCalls): number => buckets.reduce((sum, [, calls]) => sum + calls, 0);
const rateOf = (recent: RecentCalls): number => callsOf(recent) / recent.seconds;
const rounded = (value: number): number => Math.round(value * 10) / 10;

/** Computed over all these calls together: histograms can be added up, percentiles cannot. */
function percentiles(recents: readonly RecentCalls[]): Record<string, number | null> {
  const histogram = new Array<number>(BUCKETS).fill(0);
  for (const { buckets } of recents) {
    for (const [bucket, calls] of buckets) histogram[bucket] = (histogram[bucket] ?? 0) + calls;
  }
  const ms = (q: number): number | null => {
    const us = quantile(histogram, q);
    return us === null ? null : Math.round(us / 100) / 10;
  };
  return { p50_ms: ms(0.5), p99_ms: ms(0.99) };
}
