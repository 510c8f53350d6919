import type { CallAdmission } from '../admission/sharded-admission.ts';
import type { Listing } from '../catalog/listing.ts';
import type { Gate } from '../gate/gate.ts';
import type { RefundReason } from '../ledger/usage-event.ts';
import type { Log } from '../observability/log.ts';
import type { UpstreamClient } from '../upstream/index.ts';
import type { BufferedBytes } from './buffered-bytes.ts';
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
  /** Where buyers can add money, or null. */
  readonly topUpUrl: string | null;
  readonly messages: Messages;
  readonly eventStreams: EventStreams;
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
  /** Latencies of the calls that ended, by the buckets of src/ledger/rollups/latency-buckets.ts. */
  latencies: Float64Array;
};
