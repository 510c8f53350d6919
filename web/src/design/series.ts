/** The interval between two times of a chart. */
export type Unit = 'day' | 'hour' | 'second';

/** A series of values in a chart. */
export type Series = {
  readonly name: string;
  /** One value for each time; null where there is none. */
  readonly values: readonly (number | null)[];
  /** Bars for sums of a period, lines for states. Default: line. */
  readonly kind?: 'line' | 'bar';
  /** The link of its name above the chart. */
  readonly href?: string;
  /** A name from tokens.css, if the meaning has a colour: `--bad`. Default: the next of the series' colours. */
  readonly colour?: `--${string}`;
};

const HOUR_S = 3_600;
/** Minimum hours of a chart: fewer would be as wide as days. */
const MIN_HOURS = 24;

/** The hours of a chart, in seconds: from the first known one, and at least a day, up to the present hour. */
export function hoursUpToNow(known: Iterable<number>, nowMs: number): number[] {
  const now = Math.floor(nowMs / 1_000 / HOUR_S) * HOUR_S;
  const first = Math.min(now - (MIN_HOURS - 1) * HOUR_S, ...known);
  return Array.from({ length: (now - first) / HOUR_S + 1 }, (_, at) => first + at * HOUR_S);
}

/** The colour of a series, by its name in tokens.css. @param at its index among the series */
export const colourOf = ({ colour }: Series, at: number): string => colour ?? `--series-${(at % 5) + 1}`;
