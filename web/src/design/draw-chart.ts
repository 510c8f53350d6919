import './chart.css';
import uPlot from 'uplot';
import { colourOf, type Series, type Unit } from './series.ts';

type Options = {
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly top: number | undefined;
  readonly whole: boolean;
  /** The value of a series at a time, which may be drawn stacked on others. */
  readonly valueAt: (series: number, at: number) => number | null;
  readonly unit: Unit;
  readonly height: number;
  readonly language: string;
};

const DAY_S = 86_400;

/** Charts of more days than this also show the year beside the pointer. */
const MOST_OF_A_YEAR = 300;

/** Between two marks of an axis of days: a chart of few days names each once. */
const DAY_STEPS = [1, 2, 3, 7, 14, 28, 56, 112].map((days) => days * DAY_S);

/** From 0.000001 to 50 000 000: between two marks of an axis, so that no mark has more digits than its step. */
const STEPS = Array.from({ length: 14 }, (_, at) => [1, 2, 5].map((step) => Number(`${step}e${at - 6}`))).flat();

/** Draws a chart in the colours of the page. */
export function drawChart(element: HTMLElement, data: uPlot.AlignedData, options: Options): uPlot {
  const { series, format, top, whole, unit, height, language } = options;
  const utc = unit !== 'second';
  const probe = getComputedStyle(element);
  const colour = (name: string): string => resolved(element, probe.getPropertyValue(name));
  const axis = { stroke: colour('--ink-faint'), font: `12px ${probe.fontFamily}`, ticks: { show: false } };
  const axisTime = new Intl.DateTimeFormat(
    language,
    unit === 'second'
      ? { hour: 'numeric', minute: '2-digit', second: '2-digit' }
      : { month: 'short', day: 'numeric', timeZone: 'UTC' },
  );
  const axisHour = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit', timeZone: 'UTC' });
  // At the beginning of a day its name is written; in between, hours.
  const axisText = (at: number): string =>
    (unit === 'hour' && at % DAY_S !== 0 ? axisHour : axisTime).format(at * 1_000);
  const bars = uPlot.paths.bars?.({ size: [0.7, 40], radius: 0.15 });
  const hasLines = series.some(({ kind }) => kind !== 'bar');
  // A bar is centred on its time: without room the first and the last would be cut in half.
  const times = data[0];
  const step = times.length > 1 ? (times[1] as number) - (times[0] as number) : DAY_S;
  const room = series.some(({ kind }) => kind === 'bar') ? step / 2 : 0;
  return new uPlot(
    {
      width: element.clientWidth,
      height,
      // Half of the last time label is to the right of its mark.
      padding: [8, unit === 'day' ? 24 : 36, 0, 0],
      // Days are numbers here, so that no time zone shifts them.
      ...(utc ? { tzDate: (ts: number) => uPlot.tzDate(new Date(ts * 1_000), 'Etc/UTC') } : {}),
      cursor: { y: false, points: { show: hasLines, size: 6 }, drag: { x: false, y: false } },
      legend: { show: false },
      plugins: [valuesBesidePointer(options)],
      scales: {
        ...(room === 0 ? {} : { x: { range: (_self: uPlot, min: number, max: number) => [min - room, max + room] } }),
        y: { range: (_self, _min, max) => [0, top ?? (max > 0 ? max * 1.1 : 1)] },
      },
      axes: [
        {
          ...axis,
          ...(unit === 'day' ? { incrs: DAY_STEPS } : {}),
          grid: { show: false },
          space: unit === 'second' ? 95 : 70,
          // The first label is below the lowest value of the other axis, not on it.
          gap: 9,
          size: 30,
          values: (_self, times) => times.map(axisText),
        },
        {
          ...axis,
          grid: { stroke: colour('--line'), width: 1 },
          incrs: whole ? STEPS.filter((step) => step >= 1) : STEPS,
          // As wide as its widest number.
          size: (self, values) => {
            self.ctx.font = `${12 * devicePixelRatio}px ${probe.fontFamily}`;
            const widths = (values ?? []).map((text) => self.ctx.measureText(text).width / devicePixelRatio);
            return Math.ceil(Math.max(24, ...widths)) + 12;
          },
          values: (_self, values) => values.map((value) => format(value)),
        },
      ],
      series: [
        {},
        ...series.map((its, at) => ({
          label: its.name,
          stroke: colour(colourOf(its, at)),
          width: its.kind === 'bar' ? 0 : 2,
          points: { show: its.kind !== 'bar' && times.length < 3, filter: its.kind === 'bar' ? () => null : lonely },
          ...(its.kind === 'bar' && bars !== undefined ? { paths: bars, fill: colour(colourOf(its, at)) } : {}),
        })),
      ],
    },
    data,
    element,
  );
}

/** A small box beside the pointer: the time, and the value of each series. Without a pointer there is the table. */
function valuesBesidePointer({ series, format, valueAt, unit, language }: Options): uPlot.Plugin {
  const box = made('div', 'chart-tip');
  const time = made('strong', '');
  const values = series.map(() => made('span', 'chart-tip-value'));
  box.append(time);
  series.forEach((its, at) => {
    const row = made('span', 'chart-tip-row');
    row.append(made('span', `swatch swatch${colourOf(its, at)}`), its.name, values[at] as HTMLElement);
    box.append(row);
  });
  box.hidden = true;
  const timeText = (at: number, times: number): string => {
    const year = times > MOST_OF_A_YEAR ? ({ year: 'numeric' } as const) : {};
    const hour = unit === 'hour' ? ({ hour: 'numeric', minute: '2-digit' } as const) : {};
    const day = { weekday: 'short', month: 'short', day: 'numeric', timeZone: 'UTC', ...year, ...hour } as const;
    return new Intl.DateTimeFormat(language, unit === 'second' ? { timeStyle: 'medium' } : day).format(at * 1_000);
  };
  return {
    hooks: {
      init: (self) => self.over.append(box),
      setCursor: (self) => {
        const { idx, left = -1, top = -1 } = self.cursor;
        const at = idx == null ? undefined : self.data[0][idx];
        box.hidden = idx == null || at === undefined || left < 0;
        if (idx == null || at === undefined || left < 0) return;
        time.textContent = timeText(at, self.data[0].length);
        values.forEach((value, series) => {
          const its = valueAt(series, idx);
          value.textContent = its === null ? '–' : format(its);
        });
        moveTo(box, self.over, left, top);
      },
    },
  };
}

/** Pixels between the pointer and the box. */
const AWAY = 14;

/** To the right of the pointer, or to the left if there is more room, and never outside the chart. */
function moveTo(box: HTMLElement, over: HTMLElement, left: number, top: number): void {
  const { offsetWidth: width, offsetHeight: height } = box;
  const isRight = left < over.clientWidth / 2;
  const x = isRight ? left + AWAY : left - AWAY - width;
  const most = over.clientWidth - width;
  const y = Math.max(0, Math.min(top - height / 2, over.clientHeight - height));
  box.style.transform = `translate(${Math.max(-over.offsetLeft, Math.min(x, most))}px, ${y}px)`;
}

function made(tag: 'div' | 'span' | 'strong', name: string): HTMLElement {
  const element = document.createElement(tag);
  element.className = name;
  return element;
}

/** Values without neighbours: no line leads to them, so they are drawn as points. */
const lonely: uPlot.Series.Points.Filter = (chart, series) => {
  const values = chart.data[series] ?? [];
  const has = (at: number): boolean => values[at] !== null && values[at] !== undefined;
  return [...values.keys()].filter((at) => has(at) && !has(at - 1) && !has(at + 1));
};

/** A canvas does not support `light-dark()`, so the browser computes the colour. */
function resolved(element: HTMLElement, value: string): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  element.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
