/** What lies between two times of a chart. */
export type Unit = 'day' | 'hour' | 'second';

/** What is drawn in a chart. */
export type Series = {
  readonly name: string;
  /** One value for each time; null where there is none. */
  readonly values: readonly (number | null)[];
  /** Bars for sums of a period, lines for states. Default: line. */
  readonly kind?: 'line' | 'bar';
  /** Where its name above the chart leads. */
  readonly href?: string;
  /** A name of tokens.css, where the meaning has a colour: `--bad`. Default: the next of the series' colours. */
  readonly colour?: `--${string}`;
};

/** The colour of a series, as tokens.css names it. @param at  its index among the series */
export const colourOf = ({ colour }: Series, at: number): string => colour ?? `--series-${(at % 5) + 1}`;
