import type { CallAdmission } from '../admission/sharded-admission.ts';
import type { Listing } from '../catalog/listing.ts';
import type { Gate } from '../gate/gate.ts';
import type { BalanceRefusals } from '../keys/balance-refusals.ts';
import type { BudgetRefusals } from '../keys/children/budget-refusals.ts';
import { noLatencies } from '../ledger/rollups/latency-buckets.ts';
import type { RefundReason } from '../ledger/usage-event.ts';
import { LatencyHistogram } from '../observability/latency-histogram.ts';
import type { Log } from '../observability/log.ts';
import type { Operator } from '../platform/operator.ts';
import type { Answers } from '../replay/answers.ts';
import type { Replays } from '../replay/replays.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import type { BufferedBytes } from './buffered-bytes.ts';
import type { UnheardCalls } from './by-use/unheard-calls.ts';
import type { EventStreams } from './event-stream.ts';
import type { Messages } from './mcp/messages.ts';
import type { Offers } from './offers.ts';
import type { Pseudonyms } from './pseudonyms.ts';

/** What all calls of a gateway share. */
export type ExchangeOptions = {
  readonly gate: Gate;
  readonly catalog: { get(serviceId: string): Listing | undefined; ready(): boolean };
  readonly offers: Offers;
  readonly admission: CallAdmission;
  readonly upstream: UpstreamClient;
  readonly pseudonyms: Pseudonyms;
  readonly maxRequestBodyBytes: number;
  readonly bufferedBytes: BufferedBytes;
  readonly operator: Operator;
  readonly messages: Messages;
  readonly eventStreams: EventStreams;
  readonly unheardCalls: UnheardCalls;
  readonly answers: Answers;
  readonly budgetRefusals: Pick<BudgetRefusals, 'count'>;
  readonly balanceRefusals: Pick<BalanceRefusals, 'count'>;
  readonly replays: Pick<Replays, 'count'>;
  /** True while too many usage events wait in Redis, or Redis's memory is nearly full. Every new call is refused then. */
  readonly backlogFull: () => boolean;
  readonly counters: ExchangeCounters;
  readonly log: Log;
};

/** Plain numbers, because every call increments them. They become text only when somebody reads `/metrics`. */
export type ExchangeCounters = {
  admitted: number;
  open: number;
  completed: number;
  refunded: Map<RefundReason, number>;
  refused: Map<string, number>;
  /** Calls that got the first answer again. */
  replayed: number;
  /** Latencies of the calls that ended, by the buckets of src/ledger/rollups/latency-buckets.ts. */
  latencies: Float64Array;
  /** Where the time of calls goes, for Prometheus. */
  readonly timings: CallTimings;
};

/** A call is counted once in each histogram, when that part of it ends. */
export type CallTimings = {
  /**
   * From the request head to the decision of Redis; for an MCP server, from the complete message. Calls that are not admitted are
   * included.
   */
  readonly admission: LatencyHistogram;
  /** From the admission to the service's response head, or to its failure before that. */
  readonly service: LatencyHistogram;
  /** From the request head to the settlement: the latency in the call's record. */
  readonly total: LatencyHistogram;
};

/** The counters of a gateway that has had no calls. */
export const newCounters = (): ExchangeCounters => ({
  admitted: 0,
  open: 0,
  completed: 0,
  refunded: new Map(),
  refused: new Map(),
  replayed: 0,
  latencies: noLatencies(),
  timings: { admission: new LatencyHistogram(), service: new LatencyHistogram(), total: new LatencyHistogram() },
});
