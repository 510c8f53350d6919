import type { ComponentChildren } from 'preact';
import { digitsOf, money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';

export type Column<Row> = {
  readonly title: string;
  /** The content of a cell. Default: the amount. @param amount as text, for a column of amounts */
  readonly cell?: (row: Row, amount: string) => ComponentChildren;
  /** US dollars: aligned to the right, and all amounts of a column have as many decimals as the longest needs. */
  readonly amount?: (row: Row) => number;
  /** Numbers are aligned to the right, so that their digits line up. */
  readonly right?: boolean;
  /** Left out if there is little room, as on phones: its content is also on another page. */
  readonly minor?: boolean;
  /** Long texts: on a phone they have their own line. */
  readonly wide?: boolean;
  /** Needs no title if a row is a block, because its content is self-explanatory. */
  readonly bare?: boolean;
};

/** Maximum columns that fit side by side on a phone. */
const MAX_BESIDE = 4;

/** As many columns are closer to one another. */
const MANY = 8;

/** Whether rows are blocks on a phone: the first cell is a heading, and below it each value is beside the title of its column. */
const isStacked = <Row,>(columns: readonly Column<Row>[]): boolean =>
  columns.filter(({ minor }) => !minor).length > MAX_BESIDE || columns.some(({ wide }) => wide);

const classOf = <Row,>({ right, amount, minor, wide, bare }: Column<Row>): string | undefined =>
  [right || amount ? 'right' : '', minor ? 'minor' : '', wide ? 'wide' : '', bare ? 'bare' : '']
    .filter((name) => name !== '')
    .join(' ') || undefined;

/** @param caption  what it lists, for screen readers */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
}) {
  const { language } = useI18n();
  const digits = new Map(
    columns.map(({ title, amount }) => [title, amount === undefined ? 2 : digitsOf(rows.map(amount))]),
  );
  const shown = ({ title, cell, amount }: Column<Row>, row: Row): ComponentChildren => {
    const text = amount === undefined ? '' : money(amount(row), language, digits.get(title));
    return cell === undefined ? text : cell(row, text);
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="table-frame" tabIndex={0} aria-label={caption}>
      <table
        class={`table${isStacked(columns) ? ' table-stacked' : ''}${columns.length >= MANY ? ' table-close' : ''}`}
      >
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} class={classOf(column)} data-title={column.title}>
                  {shown(column, row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
