import type { Backlog } from '../admission/backlog.ts';
import type { CallAdmission } from '../admission/sharded-admission.ts';
import type { ErrorCode } from '../errors.ts';
import type { HttpServer } from '../http/server.ts';
import type { Source } from '../observability/metrics.ts';
import type { ReplicaDemand } from '../platform/replicated-connection.ts';
import type { Breakers } from '../proxy/breakers.ts';
import type { UnheardCalls } from '../proxy/by-use/unheard-calls.ts';
import type { CallTimings, ExchangeCounters } from '../proxy/exchange-options.ts';
import type { LoadShedder } from '../proxy/load-shedder.ts';
import type { Answers } from '../replay/answers.ts';
import type { Resealer } from '../secrets/resealer.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import { type GatewayNodes, gatewayNodeMetrics } from './redis-node-metrics.ts';

/**
 * The metrics of a gateway. The code keeps each value anyway.
 *
 * Tested by test/integration/overload.test.ts, redis-full.test.ts and workers.test.ts.
 */
export function gatewayMetrics(parts: {
  readonly counters: ExchangeCounters;
  readonly server: HttpServer;
  readonly upstream: UpstreamClient;
  readonly admission: CallAdmission;
  /** Null if trips do not wait for replicas. */
  readonly replicaDemand: ReplicaDemand | null;
  readonly nodes: GatewayNodes;
  readonly backlog: Backlog;
  readonly breakers: Breakers;
  readonly shedder: LoadShedder;
  readonly unheardCalls: UnheardCalls;
  readonly answers: Answers;
  /** Null in all workers but the first. */
  readonly resealer: Resealer | null;
  readonly shards: number;
  readonly maxBacklogEvents: number;
}): Source[] {
  const { counters, server, upstream, admission, backlog, breakers, shedder, resealer } = parts;
  return [
    { name: 'tollgate_calls_admitted_total', help: 'Calls admitted', type: 'counter', read: () => counters.admitted },
    {
      name: 'tollgate_calls_completed_total',
      help: 'Calls settled as completed',
      type: 'counter',
      read: () => counters.completed,
    },
    {
      name: 'tollgate_calls_refunded_total',
      help: 'Calls settled with a refund',
      type: 'counter',
      label: 'reason',
      read: () => counters.refunded,
    },
    {
      name: 'tollgate_calls_refused_total',
      help: 'Calls that the gateway answered with an error instead of admitting them',
      type: 'counter',
      label: 'error',
      read: () => new Map([...WATCHED_REFUSALS, ...counters.refused]),
    },
    {
      name: 'tollgate_calls_replayed_total',
      help: 'Calls that were given the first answer to their Idempotency-Key again, and not charged',
      type: 'counter',
      read: () => counters.replayed,
    },
    {
      name: 'tollgate_answers_kept_total',
      help: 'Answers to calls with an Idempotency-Key that are kept for repeats',
      type: 'counter',
      read: () => parts.answers.kept,
    },
    {
      name: 'tollgate_answers_not_kept_total',
      help: 'Answers to calls with an Idempotency-Key that are not kept: too long, begun before the request had come whole, no room in Redis, or Redis did not take them',
      type: 'counter',
      label: 'reason',
      read: () => parts.answers.notKept,
    },
    ...timingMetrics(counters.timings),
    {
      name: 'tollgate_calls_shed_total',
      help: 'Calls refused because the event loop was late; tollgate_calls_refused_total counts them too',
      type: 'counter',
      read: () => shedder.shed,
    },
    {
      name: 'tollgate_event_loop_delay_max_seconds',
      help: 'Longest delay of the event loop in the last one to two minutes, sampled every 50 ms while there are requests',
      type: 'gauge',
      read: () => shedder.longestDelayMs / 1000,
    },
    {
      name: 'tollgate_breakers_open',
      help: 'Services whose calls are refused because they did not answer',
      type: 'gauge',
      read: () => breakers.open,
    },
    { name: 'tollgate_calls_open', help: 'Calls admitted and not settled', type: 'gauge', read: () => counters.open },
    {
      name: 'tollgate_settlements_unconfirmed',
      help: 'Settlements that Redis has not confirmed yet',
      type: 'gauge',
      read: () => admission.unsettled,
    },
    {
      name: 'tollgate_settlements_without_hold_total',
      help: 'Settlements whose hold was gone: the sweep had refunded it, or Redis had lost its data',
      type: 'counter',
      read: () => admission.settlementsWithoutHold,
    },
    {
      name: 'tollgate_trips_without_replicas_total',
      help: 'Trips that fewer replicas of Redis than REDIS_WAIT_REPLICAS had in time, or that Redis refused with NOREPLICAS',
      type: 'counter',
      read: () => parts.replicaDemand?.missed ?? 0,
    },
    {
      name: 'tollgate_damaged_data_total',
      help: 'Commands that met damaged data in Redis, by what is damaged; an operator has to look at it',
      type: 'counter',
      label: 'what',
      read: () => admission.damage,
    },
    { name: 'tollgate_responses_open', help: 'Responses under way', type: 'gauge', read: () => server.open },
    {
      name: 'tollgate_usage_backlog_events',
      help: 'Usage events waiting for Postgres, as of the last second or the last scrape',
      type: 'gauge',
      read: () => {
        // The backlog is not read while the gateway is idle, so each scrape starts a reading, which the next scrape shows. This
        // scrape does not wait for it, because a silent Redis must not delay the page.
        void backlog.read();
        return backlog.events;
      },
    },
    {
      name: 'tollgate_usage_backlog_max_events',
      help: 'MAX_BACKLOG_EVENTS: with so many usage events waiting for Postgres, new calls are refused',
      type: 'gauge',
      read: () => parts.maxBacklogEvents,
    },
    {
      name: 'tollgate_redis_memory_full',
      help: '1 while new calls are refused because Redis uses more than nine tenths of its maxmemory, else 0',
      type: 'gauge',
      read: () => (backlog.memoryFull ? 1 : 0),
    },
    {
      name: 'tollgate_shards',
      help: 'Shards of this installation; each has to be owned by a writer',
      type: 'gauge',
      read: () => parts.shards,
    },
    {
      name: 'tollgate_upstream_connections',
      help: 'Connections to services, and calls waiting for one',
      type: 'gauge',
      label: 'state',
      read: () => {
        const { connecting, idle, active, waiting } = upstream.stats();
        return new Map(Object.entries({ connecting, idle, active, waiting }));
      },
    },
    ...unheardMetrics(parts.unheardCalls),
    ...gatewayNodeMetrics(parts.nodes),
    ...(resealer === null ? [] : [secretsOf(resealer)]),
  ];
}

/**
 * Alert rules watch these refusals. Their series exist from the start, because Prometheus does not see the increase of a new
 * series.
 */
const WATCHED_REFUSALS: readonly (readonly [ErrorCode, number])[] = [
  ['internal', 0],
  ['unavailable', 0],
];

const timingMetrics = ({ admission, service, total }: CallTimings): Source[] => [
  {
    name: 'tollgate_call_admission_seconds',
    help: 'From the request head (for an MCP server, from its message) to the decision of Redis, rejections included',
    type: 'histogram',
    histogram: admission,
  },
  {
    name: 'tollgate_call_service_seconds',
    help: "From the admission to the service's response head, or to its failure before that",
    type: 'histogram',
    histogram: service,
  },
  {
    name: 'tollgate_call_seconds',
    help: 'From the request head to the last byte of the response, as in the records of calls',
    type: 'histogram',
    histogram: total,
  },
];

const unheardMetrics = (calls: UnheardCalls): Source[] => [
  {
    name: 'tollgate_calls_unheard',
    help: 'Calls priced by use whose callers left, and which are read on for the report',
    type: 'gauge',
    read: () => calls.size,
  },
  {
    name: 'tollgate_calls_unheard_bytes_total',
    help: 'Bytes of responses that were read on and dropped',
    type: 'counter',
    read: () => calls.bytes,
  },
  {
    name: 'tollgate_calls_unheard_holds_total',
    help: 'Calls that were read on until a bound, so that all that was held was charged',
    type: 'counter',
    label: 'bound',
    read: () => calls.holdsCaptured,
  },
];

const secretsOf = (resealer: Resealer): Source => ({
  name: 'tollgate_listing_secrets',
  help: 'Secrets of listings by the key of SECRETS_KEY that decrypts them, as of the last hour',
  type: 'gauge',
  label: 'key',
  read: () => new Map(Object.entries(resealer.counts ?? {})),
});
