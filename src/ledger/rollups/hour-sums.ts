import type { UsageEvent } from '../usage-event.ts';
import { arrayLiterals, quoted } from '../writing/array-literal.ts';
import { CALL_CLASSES, type CallClass, classOf, SERVICE_FAILURES } from './call-class.ts';
import { bucketOf } from './latency-buckets.ts';
import { KEY_HOURS, SERVICE_HOURS } from './sum-tables.ts';
import { TagDay } from './tag-sums.ts';

/** What sums read of a call, in addition to the charged amount. */
export type SummedCall = Settled &
  Pick<UsageEvent, 'accountId' | 'keyId' | 'providerId' | 'serviceId' | 'freeTier' | 'admittedAtMs' | 'tag'>;
type Settled = Pick<UsageEvent, 'outcome' | 'status' | 'latencyUs'>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const INDEX_OF_CLASS = new Map(CALL_CLASSES.map((name, i) => [name, i]));

/** The sums of one service in one hour. `hour` counts whole hours since 1970. */
export class ServiceHour {
  readonly serviceId: string;
  readonly hour: number;
  readonly providerId: string;
  /** The same service in another hour. A page rarely has more than two hours. */
  readonly next: ServiceHour | undefined;
  calls = 0;
  completed = 0;
  freeCalls = 0;
  /** Calls by class, in the order of CALL_CLASSES. */
  readonly classes: number[] = CALL_CLASSES.map(() => 0);
  charged = 0;
  fees = 0;
  latencySumUs = 0;
  /** Completed calls priced by use that were not free, and how many of them were charged the highest price. */
  byUse = 0;
  atCap = 0;
  /** When the first and the last call began. */
  firstMs = Number.POSITIVE_INFINITY;
  lastMs = 0;
  /** The bucket of latency of each succeeded call. */
  readonly buckets: number[] = [];
  /** The amount of each charged call. */
  readonly amounts: number[] = [];

  constructor(serviceId: string, hour: number, providerId: string, next: ServiceHour | undefined) {
    this.serviceId = serviceId;
    this.hour = hour;
    this.providerId = providerId;
    this.next = next;
  }

  add(
    event: SummedCall,
    callClass: CallClass,
    free: number,
    amount: number,
    fee: number,
    isAtCap: boolean | null,
  ): void {
    const { admittedAtMs } = event;
    this.calls++;
    if (event.outcome === 'completed') this.completed++;
    this.freeCalls += free;
    const index = INDEX_OF_CLASS.get(callClass) as number;
    this.classes[index] = (this.classes[index] as number) + 1;
    this.charged += amount;
    this.fees += fee;
    if (amount > 0) this.amounts.push(amount);
    if (isAtCap !== null && event.outcome === 'completed' && !event.freeTier) {
      this.byUse++;
      if (isAtCap) this.atCap++;
    }
    if (admittedAtMs < this.firstMs) this.firstMs = admittedAtMs;
    if (admittedAtMs > this.lastMs) this.lastMs = admittedAtMs;
    if (callClass !== 'succeeded') return;
    this.latencySumUs += event.latencyUs;
    this.buckets.push(bucketOf(event.latencyUs));
  }

  /**
   * The sums of both, which have the same service and hour. The lists are left out: `latencyColumns` and `amountColumns` count them
   * page by page. Copying them for each added page took longer the more pages a batch had.
   */
  plus(other: ServiceHour): ServiceHour {
    const { providerId } = this.providerId < other.providerId ? this : other;
    const sum = new ServiceHour(this.serviceId, this.hour, providerId, undefined);
    for (const part of [this, other]) {
      sum.calls += part.calls;
      sum.completed += part.completed;
      sum.freeCalls += part.freeCalls;
      part.classes.forEach((calls, index) => {
        sum.classes[index] = (sum.classes[index] as number) + calls;
      });
      sum.charged += part.charged;
      sum.fees += part.fees;
      sum.latencySumUs += part.latencySumUs;
      sum.byUse += part.byUse;
      sum.atCap += part.atCap;
      sum.firstMs = Math.min(sum.firstMs, part.firstMs);
      sum.lastMs = Math.max(sum.lastMs, part.lastMs);
    }
    return sum;
  }
}

/** The sums of one key with one service in one hour. */
export class KeyHour {
  readonly keyId: string;
  readonly hour: number;
  readonly serviceId: string;
  readonly accountId: string;
  /** The same key in another hour or with another service. A page of 1 000 calls bounds the length of this list. */
  readonly next: KeyHour | undefined;
  calls = 0;
  completed = 0;
  freeCalls = 0;
  succeeded = 0;
  failed = 0;
  spent = 0;
  latencySumUs = 0;
  latencyCount = 0;
  succeededUs = 0;
  /** When the first and the last call began. */
  firstMs = Number.POSITIVE_INFINITY;
  lastMs = 0;

  constructor(of: Pick<UsageEvent, 'keyId' | 'serviceId' | 'accountId'>, hour: number, next: KeyHour | undefined) {
    const { keyId, serviceId, accountId } = of;
    this.keyId = keyId;
    this.hour = hour;
    this.serviceId = serviceId;
    this.accountId = accountId;
    this.next = next;
  }

  add({ outcome, latencyUs, admittedAtMs }: SummedCall, callClass: CallClass, free: number, amount: number): void {
    this.calls++;
    if (outcome === 'completed') this.completed++;
    this.freeCalls += free;
    if (callClass === 'succeeded') {
      this.succeeded++;
      this.succeededUs += latencyUs;
    } else if (SERVICE_FAILURES.includes(callClass)) this.failed++;
    this.spent += amount;
    this.latencySumUs += latencyUs;
    if (latencyUs > 0) this.latencyCount++;
    if (admittedAtMs < this.firstMs) this.firstMs = admittedAtMs;
    if (admittedAtMs > this.lastMs) this.lastMs = admittedAtMs;
  }

  /** The sums of both, which have the same key and service, and the same hour or day. */
  plus(other: KeyHour): KeyHour {
    const sum = new KeyHour(this.accountId < other.accountId ? this : other, this.hour, undefined);
    for (const part of [this, other]) {
      sum.calls += part.calls;
      sum.completed += part.completed;
      sum.freeCalls += part.freeCalls;
      sum.succeeded += part.succeeded;
      sum.failed += part.failed;
      sum.spent += part.spent;
      sum.latencySumUs += part.latencySumUs;
      sum.latencyCount += part.latencyCount;
      sum.succeededUs += part.succeededUs;
      sum.firstMs = Math.min(sum.firstMs, part.firstMs);
      sum.lastMs = Math.max(sum.lastMs, part.lastMs);
    }
    return sum;
  }
}

/**
 * The sums over counted calls: by hour, and for tagged calls also by tag and day. Tested by test/ledger/writing/flush.test.ts, and
 * against sums in SQL by test/ledger/rollups/hours.test.ts.
 */
export class HourSums {
  readonly #services = new Map<string, ServiceHour>();
  readonly #keys = new Map<string, KeyHour>();
  readonly #tags = new Map<string, TagDay>();

  /** @param isAtCap whether a call priced by use was charged the highest price; null: it had a fixed price */
  add(event: SummedCall, amount: number, fee: number, isAtCap: boolean | null): void {
    const hour = Math.floor(event.admittedAtMs / HOUR_MS);
    const callClass = classOf(event);
    const free = event.freeTier && event.outcome === 'completed' ? 1 : 0;
    this.#serviceHour(event, hour).add(event, callClass, free, amount, fee, isAtCap);
    this.#keyHour(event, hour).add(event, callClass, free, amount);
    if (event.tag !== null) this.#tagDay(event, event.tag).add(event, free, amount);
  }

  /** The provider is part of the match, because earnings are computed from these sums as well. */
  #serviceHour({ serviceId, providerId }: SummedCall, hour: number): ServiceHour {
    const first = this.#services.get(serviceId);
    for (let at = first; at !== undefined; at = at.next) {
      if (at.hour === hour && at.providerId === providerId) return at;
    }
    const sums = new ServiceHour(serviceId, hour, providerId, first);
    this.#services.set(serviceId, sums);
    return sums;
  }

  /** The account is part of the match, because what a buyer pays is computed from these sums as well. */
  #keyHour(event: SummedCall, hour: number): KeyHour {
    const { keyId, serviceId, accountId } = event;
    const first = this.#keys.get(keyId);
    for (let at = first; at !== undefined; at = at.next) {
      if (at.hour === hour && at.serviceId === serviceId && at.accountId === accountId) return at;
    }
    const sums = new KeyHour(event, hour, first);
    this.#keys.set(keyId, sums);
    return sums;
  }

  #tagDay({ accountId, admittedAtMs }: SummedCall, tag: string): TagDay {
    const day = Math.floor(admittedAtMs / DAY_MS);
    const name = `${accountId} ${day} ${tag}`;
    let sums = this.#tags.get(name);
    if (sums === undefined) {
      sums = new TagDay(accountId, day, tag);
      this.#tags.set(name, sums);
    }
    return sums;
  }

  services(): ServiceHour[] {
    return listed(this.#services.values());
  }

  keys(): KeyHour[] {
    return listed(this.#keys.values());
  }

  /** In the order in which they first occurred. */
  tags(): TagDay[] {
    return Array.from(this.#tags.values());
  }
}

function listed<T extends { readonly next: T | undefined }>(lists: Iterable<T>): T[] {
  const all: T[] = [];
  for (const first of lists) {
    for (let at: T | undefined = first; at !== undefined; at = at.next) all.push(at);
  }
  return all;
}

export type Hours = {
  readonly services: readonly ServiceHour[];
  readonly keys: readonly KeyHour[];
  readonly tags: readonly TagDay[];
};

/**
 * Adds up the sums that belong to the same row, since several pages of a batch may have calls of the same key, and most have the
 * same services. The pages are not changed.
 */
function merged<T extends { plus(other: T): T }>(all: readonly T[], nameOf: (sums: T) => string): T[] {
  const byName = new Map<string, T>();
  for (const sums of all) {
    const name = nameOf(sums);
    const earlier = byName.get(name);
    byName.set(name, earlier === undefined ? sums : earlier.plus(sums));
  }
  return Array.from(byName.values());
}

/** The sums by key of all pages of a batch, each key, hour and service once. */
export const keyHours = (pages: readonly Hours[]): KeyHour[] =>
  merged(
    pages.flatMap(({ keys }) => keys),
    ({ keyId, hour, serviceId }) => `${keyId} ${hour} ${serviceId}`,
  );

/** One array literal for each column of `key_hours`. */
export function keyHourColumns(rows: readonly KeyHour[]): string[] {
  return arrayLiterals(rows, KEY_HOURS.columns.length, (k, add) => {
    add(0, quoted(k.keyId));
    add(1, k.hour);
    add(2, k.serviceId);
    add(3, k.accountId);
    add(4, k.calls);
    add(5, k.completed);
    add(6, k.freeCalls);
    add(7, k.succeeded);
    add(8, k.failed);
    add(9, k.latencyCount);
    add(10, k.spent);
    add(11, k.latencySumUs);
    add(12, k.succeededUs);
    add(13, k.firstMs);
    add(14, k.lastMs);
  });
}

/** The sums by service of all pages of a batch: one array literal for each column of `service_hours`. */
export function serviceColumns(pages: readonly Hours[]): string[] {
  const rows = merged(
    pages.flatMap(({ services }) => services),
    ({ serviceId, hour }) => `${serviceId} ${hour}`,
  );
  return arrayLiterals(rows, SERVICE_HOURS.columns.length, (s, add) => {
    [s.serviceId, s.hour, s.providerId, s.calls, s.completed, s.freeCalls, ...s.classes].forEach((value, i) => {
      add(i, value);
    });
    const rest = 6 + CALL_CLASSES.length;
    add(rest, s.charged);
    add(rest + 1, s.fees);
    add(rest + 2, s.latencySumUs);
    add(rest + 3, s.byUse);
    add(rest + 4, s.atCap);
    add(rest + 5, s.firstMs);
    add(rest + 6, s.lastMs);
  });
}
