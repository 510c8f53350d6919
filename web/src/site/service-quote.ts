// Texts of providers as literals of a shell, JavaScript and Python: whatever they contain, they remain one value. Tested by
// test/web/service-quote.test.ts, which runs them.

import { type Json, wellFormed } from '../../../src/catalog/operations/sample-request.ts';

export { type Json, wellFormed };

/** A text unchanged; any other value as JSON over several lines. */
export const jsonText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value, null, 2);

/** Undefined if the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One word of a POSIX shell. A word cannot contain NUL, so this character is left out. */
export function shellWord(text: string): string {
  const safe = wellFormed(text).replaceAll('\0', '');
  if (/^[\w@%+:,./][\w@%+=:,./-]*$/.test(safe)) return safe;
  return `'${safe.replaceAll("'", `'\\''`)}'`;
}

/** A literal of JavaScript over several lines. @param indent of the line on which it begins */
export const scriptLiteral = (value: Json, indent = ''): string => literal(value, indent, SCRIPT);

/** A literal of Python 3 over several lines. */
export const pythonLiteral = (value: Json, indent = ''): string => literal(value, indent, PYTHON);

type Dialect = {
  readonly indent: string;
  readonly words: Readonly<Record<string, string>>;
  readonly name: (name: string) => string;
};

// JSON escapes quotes, backslashes and control characters in a way that both languages read. Characters outside the basic plane are
// not escaped: Python would read an escaped surrogate pair as two characters.
const quoted = (text: string): string =>
  JSON.stringify(wellFormed(text)).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

const SCRIPT: Dialect = {
  indent: '  ',
  words: { null: 'null', true: 'true', false: 'false' },
  // `"__proto__": x` would set the prototype.
  name: (name) => (name === '__proto__' ? '["__proto__"]' : /^[A-Za-z_]\w*$/.test(name) ? name : quoted(name)),
};
const PYTHON: Dialect = {
  indent: '    ',
  words: { null: 'None', true: 'True', false: 'False' },
  name: quoted,
};

function literal(value: Json, indent: string, dialect: Dialect): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number') return JSON.stringify(value);
  if (value === null || typeof value === 'boolean') return dialect.words[String(value)] as string;
  const deeper = indent + dialect.indent;
  const entries = Array.isArray(value)
    ? value.map((item: Json) => literal(item, deeper, dialect))
    : Object.entries(value).map(([name, item]) => `${dialect.name(name)}: ${literal(item, deeper, dialect)}`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return open + close;
  const line = entries.join(', ');
  const isShort = line.length <= 60 && !line.includes('\n');
  if (isShort) return open === '[' || dialect === PYTHON ? `${open}${line}${close}` : `${open} ${line} ${close}`;
  return `${open}\n${entries.map((entry) => `${deeper}${entry},\n`).join('')}${indent}${close}`;
}
