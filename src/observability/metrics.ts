import { performance } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { BOUNDS_SECONDS, type LatencyHistogram } from './latency-histogram.ts';

/** A number that the code keeps anyway. It is read only when metrics are scraped, so the hot path uses no metrics library. */
export type Source = NumberSource | HistogramSource;

type NumberSource = {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  /** The value, or a map from each value of `label` to a number. */
  readonly read: () => number | Promise<number> | ReadonlyMap<string, number>;
  /** Name of the label, when `read` returns a map. */
  readonly label?: string;
};

type HistogramSource = {
  readonly name: string;
  readonly help: string;
  readonly type: 'histogram';
  /** The histogram, or a function that returns one for each value of `label`. */
  readonly histogram: LatencyHistogram | (() => ReadonlyMap<string, LatencyHistogram>);
  readonly label?: string;
};

/** One metric with all its values, as plain data: processes send these to each other. */
export type MetricFamily = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number];

/**
 * Period at which prom-client samples the event loop's delay. With its default of 10 ms, that timer used 0.4 % of a core in each
 * idle process. The sampling cannot be turned off, so its period is a day, and its metrics are removed.
 */
const NO_SAMPLING_MS = 86_400_000;
const SAMPLED_LAG = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (kind) => `nodejs_eventloop_lag_${kind}_seconds`,
);

const EVENT_LOOP: Source = {
  name: 'tollgate_event_loop_active_seconds_total',
  help: 'Seconds for which the event loop was busy; the rate is the share of time in which it is busy, at most 1',
  type: 'counter',
  read: () => performance.eventLoopUtilization().active / 1000,
};

/**
 * Prometheus metrics: the sources that were added, and those of the process itself (event loop, memory, GC).
 *
 * Tested by test/supervisor/supervisor.test.ts.
 */
export class Metrics {
  readonly #registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: NO_SAMPLING_MS });
    for (const name of SAMPLED_LAG) this.#registry.removeSingleMetric(name);
    this.add([EVENT_LOOP]);
  }

  add(sources: readonly Source[]): void {
    for (const source of sources) {
      if (source.type === 'histogram') this.#registry.registerMetric(asMetric(() => histogramFamily(source)));
      else this.#register(source);
    }
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  render(): Promise<string> {
    return this.#registry.metrics();
  }

  families(): Promise<MetricFamily[]> {
    return this.#registry.getMetricsAsJSON();
  }

  #register({ name, help, type, read, label }: NumberSource): void {
    const configuration = { name, help, labelNames: label === undefined ? [] : [label], registers: [this.#registry] };
    if (type === 'gauge') {
      const gauge = new Gauge({
        ...configuration,
        async collect() {
          const value = await read();
          // A value that is no longer read, such as that of a node that left, is no longer shown.
          gauge.reset();
          report(value, label, (labels, number) => gauge.set(labels, number));
        },
      });
      return;
    }
    const counter = new Counter({
      ...configuration,
      async collect() {
        const value = await read();
        counter.reset();
        report(value, label, (labels, number) => counter.inc(labels, number));
      },
    });
  }
}

/** The same metrics with the label `name` added to each value. A value that already has this label keeps its own label value. */
export function labelled(families: readonly MetricFamily[], name: string, value: string): MetricFamily[] {
  return families.map((family) => ({
    ...family,
    values: family.values.map((item) => ({ ...item, labels: { [name]: value, ...item.labels } })),
  }));
}

/** The metrics of several processes as one page. Each metric appears once, with the values of all processes. */
export function renderFamilies(families: readonly MetricFamily[]): Promise<string> {
  const byName = new Map<string, MetricFamily>();
  for (const family of families) {
    const known = byName.get(family.name);
    byName.set(family.name, known === undefined ? family : { ...known, values: [...known.values, ...family.values] });
  }
  const page = new Registry();
  for (const family of byName.values()) page.registerMetric(asMetric(() => family));
  return page.metrics();
}

/** prom-client uses only the name and `get` of a metric that it renders, so an object with these can stand for one. */
function asMetric(get: () => MetricFamily): Gauge {
  return { name: get().name, get: async () => get() } as unknown as Gauge;
}

/** Converts to the form of prom-client. The counts of Prometheus' buckets are cumulative. */
function histogramFamily({ name, help, type, histogram, label = 'label' }: HistogramSource): MetricFamily {
  const values =
    typeof histogram === 'function'
      ? Array.from(histogram(), ([value, one]) => histogramValues(name, one, { [label]: value })).flat()
      : histogramValues(name, histogram, {});
  return { name, help, type, values, aggregator: 'sum' } as unknown as MetricFamily;
}

function histogramValues(name: string, histogram: LatencyHistogram, labels: Readonly<Record<string, string>>) {
  const { counts, sumSeconds } = histogram.read();
  let total = 0;
  const buckets = counts.map((count, i) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { ...labels, le: BOUNDS_SECONDS[i] ?? '+Inf' }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sumSeconds },
    { metricName: `${name}_count`, labels, value: total },
  ];
}

function report(
  value: number | ReadonlyMap<string, number>,
  label: string | undefined,
  set: (labels: Record<string, string>, value: number) => void,
): void {
  if (typeof value === 'number') set({}, value);
  else for (const [labelValue, number] of value) set({ [label ?? 'label']: labelValue }, number);
}
