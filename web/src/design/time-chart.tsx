import { useI18n } from '../i18n/i18n.tsx';
import { Plot } from './plot.tsx';
import { colourOf, type Series, type Unit } from './series.ts';

/**
 * Values over time. Screen readers get the same numbers as a table.
 *
 * @param times   seconds since 1970, in order
 * @param format  how a value is written, on the axis and beside the pointer
 * @param stacked  the parts of a whole: the last series stands at the bottom, the first on top
 * @param top     the upper end of the axis, if it is known: 1 for shares
 * @param whole   values are whole numbers: the axis names no others
 * @param unit    what lies between two times: days and hours are of UTC, seconds of the reader's clock
 */
export function TimeChart({
  label,
  times,
  series,
  format,
  top,
  stacked = false,
  whole = false,
  unit = 'day',
  height = 200,
  language = 'en',
}: {
  readonly label: string;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly top?: number;
  readonly stacked?: boolean;
  readonly whole?: boolean;
  readonly unit?: Unit;
  readonly height?: number;
  readonly language?: string;
}) {
  const { t } = useI18n();
  const drawn = stacked ? sums(series) : series.map(({ values }) => values);

  return (
    <figure class="chart">
      {series.length > 1 && (
        // Names without links say no more than the table below.
        <ul class="chart-names" aria-hidden={series.every(({ href }) => href === undefined)}>
          {series.map((its, at) => (
            <li key={its.name}>
              <span class={`swatch swatch${colourOf(its, at)}`} />{' '}
              {its.href === undefined ? its.name : <a href={its.href}>{its.name}</a>}
            </li>
          ))}
        </ul>
      )}
      <Plot {...{ times, series, drawn, format, top, whole, unit, height, language }} />
      {/* A table itself would not keep to the height of one pixel. */}
      <div class="visually-hidden">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <th scope="col">{t(unit === 'day' ? 'service.chartDay' : 'page.time')}</th>
              {series.map(({ name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, at) => (
              <tr key={time}>
                <th scope="row">{new Date(time * 1_000).toISOString().slice(0, unit === 'day' ? 10 : 19)}</th>
                {series.map(({ name, values }) => {
                  const value = values[at] ?? null;
                  return <td key={name}>{value === null ? '' : format(value)}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  );
}

/** Each series is added to those after it: drawn in order, each covers the lower part of the previous one. */
const sums = (series: readonly Series[]): (number | null)[][] =>
  series.map(({ values }, at) =>
    values.map((_, time) => series.slice(at).reduce((sum, its) => sum + (its.values[time] ?? 0), 0)),
  );
