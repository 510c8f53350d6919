import type { Schemas } from '../../../api/client.ts';

export type Traffic = Schemas['Traffic'];
type Worker = Traffic['workers'][number];

/** Calls that ended between two moments, by how they ended, for each second. */
type Rates = { readonly completed: number; readonly refunded: number; readonly refused: number };

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((total, value) => total + value, 0);

/**
 * How many calls a second ended between two snapshots; null if that cannot be told. Counters begin at zero with each start, so only
 * workers in both snapshots count, and those that started in between with their full counts.
 */
export function ratesBetween(earlier: Traffic, later: Traffic): Rates | null {
  const seconds = (Date.parse(later.at) - Date.parse(earlier.at)) / 1_000;
  if (!(seconds > 0)) return null;
  const before = new Map(earlier.workers.map((worker) => [worker.instance, worker]));
  const change = (pick: (worker: Worker) => number): number => {
    const ended = later.workers.reduce((total, worker) => {
      const known = before.get(worker.instance);
      const isNew = Date.parse(worker.started_at) >= Date.parse(earlier.at);
      if (known === undefined) return total + (isNew ? pick(worker) : 0);
      return total + Math.max(0, pick(worker) - pick(known));
    }, 0);
    return Math.round((ended / seconds) * 10) / 10;
  };
  return {
    completed: change(({ calls }) => calls.completed),
    refunded: change(({ calls }) => sum(calls.refunded)),
    refused: change(({ calls }) => sum(calls.refused)),
  };
}

export type Point = { readonly at: number; readonly rates: Rates | null; readonly p99: number | null };

/** Refused calls a second over the last five seconds, the same time as for the calls shown beside it. */
export function recentlyRefused(points: readonly Point[]): number {
  const rates = points.slice(-5).flatMap((point) => (point.rates === null ? [] : [point.rates.refused]));
  if (rates.length === 0) return 0;
  return Math.round((rates.reduce((total, rate) => total + rate, 0) / rates.length) * 10) / 10;
}

/** How far back the charts reach. */
const WINDOW_SECONDS = 120;

/** The points of the last two minutes and a newer one. A snapshot after a pause begins a new line. */
export function withSnapshot(points: readonly Point[], previous: Traffic | null, next: Traffic): readonly Point[] {
  const at = Math.round(Date.parse(next.at) / 1_000);
  const rates = previous === null ? null : ratesBetween(previous, next);
  const kept = points.filter((point) => point.at > at - WINDOW_SECONDS && point.at < at);
  return [...kept, { at, rates, p99: next.totals.p99_ms }];
}

/** One point for each second, so that the charts move evenly and a pause shows as a gap. */
export function everySecond(points: readonly Point[], until: number): readonly Point[] {
  const byTime = new Map(points.map((point) => [point.at, point]));
  return Array.from({ length: WINDOW_SECONDS }, (_, index) => {
    const at = until - WINDOW_SECONDS + 1 + index;
    return byTime.get(at) ?? { at, rates: null, p99: null };
  });
}

/** Reasons and codes over all workers, most frequent first. */
export function outcomes(traffic: Traffic): readonly (readonly [kind: string, name: string, calls: number])[] {
  const totals = new Map<string, number>();
  const add = (name: string, calls: number): void => void totals.set(name, (totals.get(name) ?? 0) + calls);
  for (const { calls } of traffic.workers) {
    add('completed ', calls.completed);
    for (const [reason, count] of Object.entries(calls.refunded)) add(`refunded ${reason}`, count);
    for (const [code, count] of Object.entries(calls.refused)) add(`refused ${code}`, count);
  }
  return [...totals]
    .map(([key, calls]) => [key.slice(0, key.indexOf(' ')), key.slice(key.indexOf(' ') + 1), calls] as const)
    .sort((a, b) => b[2] - a[2]);
}
