import type { Unit } from './series.ts';

// What a chart draws, as numbers and SVG paths. Tested by test/web/chart-shapes.test.ts.

export const DAY_S = 86_400;
const HOUR_S = 3_600;

/** Minimum seconds between two marks. */
const UNIT_S: Readonly<Record<Unit, number>> = { second: 1, hour: HOUR_S, day: DAY_S };

/** Minimum pixels between two marks: a time of the day with seconds is longer than `12:00 PM` or `Nov 26`. */
const TIME_SPACE: Readonly<Record<Unit, number>> = { second: 95, hour: 70, day: 70 };
const VALUE_SPACE = 30;

/** Seconds between two marks. From 30 days on, months are counted. */
const TIME_STEPS = [
  ...[1, 5, 10, 15, 30, 60, 300, 600, 900, 1_800],
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_S),
  ...[1, 2, 3, 7, 14, 30, 60, 90, 180, 365].map((days) => days * DAY_S),
];

/** No amount has more digits. */
const SMALLEST_STEP = 0.000001;

/** From one pixel to another, as numbers are from one value to another. */
export type Scale = (value: number) => number;

/** @param width of the axis, in pixels @returns seconds since 1970. Days begin in UTC */
export function timeMarks(from: number, to: number, width: number, unit: Unit): number[] {
  const least = Math.max(UNIT_S[unit], ((to - from) / width) * TIME_SPACE[unit]);
  const step = TIME_STEPS.find((its) => its >= least) ?? 365 * DAY_S;
  const marks: number[] = [];
  if (step < 30 * DAY_S) {
    const whole = Math.min(step, DAY_S);
    for (let at = Math.ceil(from / whole) * whole; at <= to; at += step) marks.push(at);
    return marks;
  }
  const start = new Date(from * 1_000);
  const months = Math.round(step / (30 * DAY_S));
  for (let month = start.getUTCMonth(); ; month += months) {
    const at = Date.UTC(start.getUTCFullYear(), month) / 1_000;
    if (at > to) return marks;
    if (at >= from) marks.push(at);
  }
}

/** From 0 on, at steps of 1, 2 or 5 times a power of ten. @param height of the axis, in pixels @param whole only whole numbers */
export function valueMarks(top: number, height: number, whole: boolean): number[] {
  const least = Math.max(whole ? 1 : SMALLEST_STEP, (top / height) * VALUE_SPACE);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = ([1, 2, 5].find((its) => its * power >= least) ?? 10) * power;
  // Without what binary fractions add: 3 * 0.1 is 0.30000000000000004.
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, at) => Number((at * step).toPrecision(12)));
}

type Values = readonly (number | null)[];

/** A line through the values, with gaps where there are none. */
export function linePath(times: readonly number[], values: Values, x: Scale, y: Scale): string {
  let isOn = false;
  return times
    .map((time, at) => {
      const value = values[at] ?? null;
      const command = value === null ? '' : `${isOn ? 'L' : 'M'}${pixels(x(time))},${pixels(y(value))}`;
      isOn = value !== null;
      return command;
    })
    .join('');
}

/** Indexes of values without neighbours, to which no line leads. */
export const lonely = (values: Values): number[] => {
  const has = (at: number): boolean => (values[at] ?? null) !== null;
  return [...values.keys()].filter((at) => has(at) && !has(at - 1) && !has(at + 1));
};

/** Bars from 0 to the values. @param column pixels between two times */
export function barsPath(times: readonly number[], values: Values, x: Scale, y: Scale, column: number): string {
  // In whole pixels, so that their edges are sharp.
  const width = Math.max(1, Math.round(Math.min(column * 0.7, 40)));
  return times
    .map((time, at) => {
      const value = values[at] ?? 0;
      if (value <= 0) return '';
      const height = y(0) - y(value);
      const round = pixels(Math.min(width * 0.15, height));
      const [left, bottom, side] = [Math.round(x(time) - width / 2), pixels(y(0)), pixels(height - round)];
      const corner = (dy: number): string => `a${round},${round} 0 0 1 ${round},${dy}`;
      return `M${left},${bottom}v${-side}${corner(-round)}h${pixels(width - 2 * round)}${corner(round)}v${side}z`;
    })
    .join('');
}

/** A hundredth of a pixel cannot be seen. */
const pixels = (value: number): number => Math.round(value * 100) / 100;
