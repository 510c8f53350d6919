import type postgres from 'postgres';

/**
 * Types that postgres.js cannot parse by itself: bigint, and every array. By default (`fetch_types`) postgres.js asks the server
 * for its array types with an extra query at every connect, and a failure of that query is an unhandled rejection. That is switched
 * off, so the array types that we read are listed here.
 */
export const VALUE_TYPES = {
  bigint: { to: 20, from: [20], serialize: String, parse: parseBigint },
  texts: arrayOf(String, 1009, 1015, 2951), // text, varchar, uuid
  times: arrayOf((text) => new Date(text), 1182, 1185), // date, timestamptz
  booleans: arrayOf((text) => text === 't', 1000),
  numbers: arrayOf(Number, 1005, 1007), // smallint, int
  bigints: arrayOf(parseBigint, 1016),
};

function parseBigint(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint out of safe range: ${text}`);
  return value;
}

/** Makes the type for arrays with these OIDs. `parseElement` reads one element. */
function arrayOf(parseElement: (text: string) => unknown, ...oids: [number, ...number[]]): postgres.PostgresType {
  const parse = (text: string): unknown[] => parseArray(text).map((x) => x && parseElement(x));
  return { to: oids[0], from: oids, serialize: arrayLiteral, parse };
}

/** A one-dimensional array as the literal that Postgres reads. A value that is not an array is already such a literal. */
function arrayLiteral(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  const elements = value.map((item) => {
    if (item === null) return 'null';
    const text = item instanceof Date ? item.toISOString() : String(item);
    return `"${text.replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}

/** Elements of a one-dimensional array literal: quoted with backslash escapes, bare, or null. */
function parseArray(literal: string): (string | null)[] {
  const elements = literal.slice(1, -1).match(/"(?:[^"\\]|\\.)*"|[^,]+/gs) ?? [];
  return elements.map((element) => {
    if (element === 'NULL') return null;
    return element.startsWith('"') ? element.slice(1, -1).replace(/\\(.)/gs, '$1') : element;
  });
}
