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

/** The colour of a series, by its name in tokens.css. @param at its index among the series */
export const colourOf = ({ colour }: Series, at: number): string => colour ?? `--series-${(at % 5) + 1}`;
