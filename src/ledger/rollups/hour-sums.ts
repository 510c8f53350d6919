import type { UsageEvent } from '../usage-event.ts';
import { quoted, transposed } from '../writing/array-literal.ts';
import { CALL_CLASSES, type CallClass, classOf, SERVICE_FAILURES } from './call-class.ts';
import { KEY_PARAMETERS, SERVICE_PARAMETERS } from './hours-sql.ts';
import { BUCKETS, bucketOf } from './latency-buckets.ts';

const HOUR_MS = 3_600_000;
const INDEX_OF_CLASS = Object.fromEntries(CALL_CLASSES.map((name, i) => [name, i])) as Record<CallClass, number>;

/** The sums of one service in one hour. `hour` counts whole hours since 1970. */
export type ServiceHour = {
  readonly serviceId: string;
  readonly hour: number;
  providerId: string;
  calls: number;
  completed: number;
  freeCalls: number;
  /** Calls by class, in the order of CALL_CLASSES. */
  readonly classes: number[];
  charged: number;
  fees: number;
  latencySumUs: number;
  /** The bucket of each succeeded call: a page has few calls, and most of a histogram would be zeros. */
  readonly buckets: number[];
  /** The same service in another hour. A page rarely has more than two hours. */
  readonly next: ServiceHour | null;
};

type KeyHour = {
  readonly keyId: string;
  readonly hour: number;
  readonly serviceId: string;
  accountId: string;
  calls: number;
  freeCalls: number;
  succeeded: number;
  failed: number;
  spent: number;
  latencySumUs: number;
  latencyCount: number;
  lastMs: number;
  /** The same key in another hour or with another service. A page of 1 000 calls bounds the length of this list. */
  readonly next: KeyHour | null;
};

/**
 * The sums by hour over the counted calls of one page. `serviceSumsOf` and `keySumsOf` make the same in SQL.
 * Tested by test/ledger/writing/flush.test.ts.
 */
export class HourSums {
  readonly #services = new Map<string, ServiceHour>();
  readonly #keys = new Map<string, KeyHour>();

  add(event: UsageEvent, amount: number, fee: number): void {
    const hour = Math.floor(event.admittedAtMs / HOUR_MS);
    const callClass = classOf(event);
    const free = event.freeTier && event.outcome === 'completed' ? 1 : 0;
    const service = this.#serviceHour(event, hour);
    if (event.providerId < service.providerId) service.providerId = event.providerId;
    service.calls++;
    if (event.outcome === 'completed') service.completed++;
    service.freeCalls += free;
    const index = INDEX_OF_CLASS[callClass];
    service.classes[index] = (service.classes[index] as number) + 1;
    service.charged += amount;
    service.fees += fee;
    const key = this.#keyHour(event, hour);
    if (event.accountId < key.accountId) key.accountId = event.accountId;
    key.calls++;
    key.freeCalls += free;
    key.spent += amount;
    key.latencySumUs += event.latencyUs;
    if (event.latencyUs > 0) key.latencyCount++;
    if (event.admittedAtMs > key.lastMs) key.lastMs = event.admittedAtMs;
    if (callClass === 'succeeded') {
      key.succeeded++;
      service.latencySumUs += event.latencyUs;
      service.buckets.push(bucketOf(event.latencyUs));
    } else if (SERVICE_FAILURES.includes(callClass)) key.failed++;
  }

  #serviceHour({ serviceId, providerId }: UsageEvent, hour: number): ServiceHour {
    const first = this.#services.get(serviceId) ?? null;
    for (let at = first; at !== null; at = at.next) if (at.hour === hour) return at;
    const sums: ServiceHour = {
      ...{ serviceId, hour, providerId, calls: 0, completed: 0, freeCalls: 0, classes: CALL_CLASSES.map(() => 0) },
      ...{ charged: 0, fees: 0, latencySumUs: 0, buckets: [], next: first },
    };
    this.#services.set(serviceId, sums);
    return sums;
  }

  #keyHour({ keyId, serviceId, accountId }: UsageEvent, hour: number): KeyHour {
    const first = this.#keys.get(keyId) ?? null;
    for (let at = first; at !== null; at = at.next) if (at.hour === hour && at.serviceId === serviceId) return at;
    const sums: KeyHour = {
      ...{ keyId, hour, serviceId, accountId, calls: 0, freeCalls: 0, succeeded: 0, failed: 0 },
      ...{ spent: 0, latencySumUs: 0, latencyCount: 0, lastMs: 0, next: first },
    };
    this.#keys.set(keyId, sums);
    return sums;
  }

  /** No sum over these calls is larger: the sum of all known latencies. */
  get latencySumUs(): number {
    let sum = 0;
    for (const first of this.#keys.values()) {
      for (let at: KeyHour | null = first; at !== null; at = at.next) sum += at.latencySumUs;
    }
    return sum;
  }

  /** The sums by service, kept as objects: there are few, and `serviceColumns` adds up those of all pages. */
  services(): ServiceHour[] {
    return listed(this.#services.values());
  }

  /** The sums by key as columns: the parameters of `keyRowsFrom`, without braces, so that those of several pages can be joined. */
  keyColumns(): string[] {
    return transposed(listed(this.#keys.values()).map(keyRow), KEY_PARAMETERS.length);
  }
}

function listed<T extends { readonly next: T | null }>(lists: Iterable<T>): T[] {
  const all: T[] = [];
  for (const first of lists) {
    for (let at: T | null = first; at !== null; at = at.next) all.push(at);
  }
  return all;
}

/** In the order of KEY_PARAMETERS. */
const keyRow = (k: KeyHour) => [
  ...[quoted(k.keyId), k.hour, k.serviceId, k.accountId, k.calls, k.freeCalls, k.succeeded, k.failed, k.spent],
  ...[k.latencySumUs, k.latencyCount, k.lastMs],
];

/** The sums by service of all pages of a batch as columns: the parameters of `serviceRowsFrom`, without braces. */
export function serviceColumns(pages: readonly { readonly services: readonly ServiceHour[] }[]): string[] {
  const groups = new Map<string, ServiceHour[]>();
  for (const { services } of pages) {
    for (const sums of services) {
      const name = `${sums.serviceId} ${sums.hour}`;
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [sums]);
      else group.push(sums);
    }
  }
  return transposed(Array.from(groups.values(), serviceRow), SERVICE_PARAMETERS.length);
}

/** One row for the sums of one service and hour from several pages, in the order of SERVICE_PARAMETERS. */
function serviceRow(parts: readonly ServiceHour[]): (string | number)[] {
  const { serviceId, hour } = parts[0] as ServiceHour;
  const sum = (of: (part: ServiceHour) => number) => parts.reduce((total, part) => total + of(part), 0);
  const histogram = new Array<number>(BUCKETS).fill(0);
  for (const { buckets } of parts) {
    for (const bucket of buckets) histogram[bucket] = (histogram[bucket] as number) + 1;
  }
  return [
    ...[serviceId, hour, parts.map(({ providerId }) => providerId).sort()[0] as string],
    ...[sum((p) => p.calls), sum((p) => p.completed), sum((p) => p.freeCalls)],
    ...CALL_CLASSES.map((_, index) => sum((p) => p.classes[index] as number)),
    ...[sum((p) => p.charged), sum((p) => p.fees), sum((p) => p.latencySumUs), `"{${histogram.join(',')}}"`],
  ];
}
