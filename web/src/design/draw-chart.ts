import './chart.css';
import uPlot from 'uplot';
import type { Series } from './time-chart.tsx';

type Options = {
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly top: number | undefined;
  /** What a series has at a time: what is drawn of it may be stacked on others. */
  readonly valueAt: (series: number, at: number) => number | null;
  readonly utc: boolean;
  readonly height: number;
  readonly language: string;
  readonly timeName: string;
};

/** Draws a chart in the colours of the page. */
export function drawChart(element: HTMLElement, data: uPlot.AlignedData, options: Options): uPlot {
  const { series, format, top, valueAt, utc, height, language, timeName } = options;
  const probe = getComputedStyle(element);
  const colour = (name: string): string => resolved(element, probe.getPropertyValue(name));
  const axis = { stroke: colour('--ink-faint'), font: `12px ${probe.fontFamily}`, ticks: { show: false } };
  const time = new Intl.DateTimeFormat(
    language,
    utc ? { month: 'short', day: 'numeric', timeZone: 'UTC' } : { timeStyle: 'medium' },
  );
  const axisTime = new Intl.DateTimeFormat(
    language,
    utc
      ? { month: 'short', day: 'numeric', timeZone: 'UTC' }
      : { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  );
  const drawn = series.map(({ name, kind, colour: its }, at) => ({
    name,
    kind,
    its: its ?? `--series-${(at % 5) + 1}`,
  }));
  const bars = uPlot.paths.bars?.({ size: [0.7, 40], radius: 0.15 });
  // A bar stands around its time: without room the first and the last would be cut in half.
  const times = data[0];
  const step = times.length > 1 ? (times[1] as number) - (times[0] as number) : 86_400;
  const room = series.some(({ kind }) => kind === 'bar') ? step / 2 : 0;
  return new uPlot(
    {
      width: element.clientWidth,
      height,
      padding: [8, 8, 0, 0],
      // Days are numbers here, so that no time zone moves them.
      ...(utc ? { tzDate: (ts: number) => uPlot.tzDate(new Date(ts * 1_000), 'Etc/UTC') } : {}),
      cursor: { points: { size: 6 }, drag: { x: false, y: false } },
      legend: { live: true },
      scales: {
        ...(room === 0 ? {} : { x: { range: (_self: uPlot, min: number, max: number) => [min - room, max + room] } }),
        y: { range: (_self, _min, max) => [0, top ?? (max > 0 ? max * 1.1 : 1)] },
      },
      hooks: {
        // Without a pointer the legend has the newest values.
        setLegend: [
          (self) => {
            const last = self.data[0].length - 1;
            if (self.legend.idx == null && last >= 0) self.setLegend({ idx: last });
          },
        ],
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 70,
          // The first label stands below the lowest value of the other axis, not on it.
          gap: 9,
          size: 36,
          values: (_self, times) => times.map((at) => axisTime.format(at * 1_000)),
        },
        {
          ...axis,
          grid: { stroke: colour('--line'), width: 1 },
          size: 64,
          values: (_self, values) => values.map((value) => format(value)),
        },
      ],
      series: [
        { label: timeName, value: (_self, at) => (at === null ? '' : time.format(at * 1_000)) },
        ...drawn.map(({ name, kind, its }, at) => ({
          label: name,
          stroke: colour(its),
          width: kind === 'bar' ? 0 : 2,
          points: { show: kind !== 'bar' && data[0].length < 3, filter: kind === 'bar' ? () => null : lonely },
          ...(kind === 'bar' && bars !== undefined ? { paths: bars, fill: colour(its) } : {}),
          value: (_self: uPlot, _drawn: number | null, _series: number, time: number | null) => {
            const value = time === null ? null : valueAt(at, time);
            return value === null ? '–' : format(value);
          },
        })),
      ],
    },
    data,
    element,
  );
}

/** Values without neighbours: no line leads to them, so they are drawn as points. */
const lonely: uPlot.Series.Points.Filter = (chart, series) => {
  const values = chart.data[series] ?? [];
  const has = (at: number): boolean => values[at] !== null && values[at] !== undefined;
  return [...values.keys()].filter((at) => has(at) && !has(at - 1) && !has(at + 1));
};

/** A canvas knows no `light-dark()`: the browser computes the colour. */
function resolved(element: HTMLElement, value: string): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
