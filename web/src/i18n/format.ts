// Numbers, money and times as people write them in a language. Everything shown goes through here, so that a page never has two
// ways to write the same thing.

/**
 * `0.002` → `$0.002`: all of up to six decimals, and at least two when there are any.
 *
 * @param digits  minimum decimals, so that the amounts of a column are in line: `digitsOf` it
 */
export function money(amount: number, language: string, digits = 2): string {
  const micros = Math.round(amount * 1e6);
  const needed = digitsOf([amount]);
  const shown = Math.max(digits, needed);
  return formatter(language, `money ${digits}`, {
    style: 'currency',
    currency: 'USD',
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: digits,
    maximumFractionDigits: shown,
  }).format(micros / 1e6);
}

/** How many decimals the amounts need: from 2 to 6. */
export const digitsOf = (amounts: readonly number[]): number =>
  amounts.reduce((most, amount) => {
    const decimals = String(Math.round(Math.abs(amount) * 1e6))
      .padStart(7, '0')
      .slice(-6)
      .replace(/0+$/, '').length;
    return Math.max(most, decimals);
  }, 2);

export const count = (value: number, language: string): string => formatter(language, 'count', {}).format(value);

/** `83.4`: one decimal. */
export const decimal = (value: number, language: string): string =>
  formatter(language, 'decimal', { minimumFractionDigits: 1, maximumFractionDigits: 1 }).format(value);

/** A share from 0 to 1 → `98.3%`. Rounded down: `100%` only if it is all. */
export const percent = (share: number, language: string): string =>
  formatter(language, 'percent', { style: 'percent', maximumFractionDigits: 1, roundingMode: 'floor' }).format(share);

/** Milliseconds → `18 ms`, `1.2 sec`. @param unitDisplay  `long` in sentences: `60 seconds` */
export function duration(ms: number, language: string, unitDisplay: 'short' | 'long' = 'short'): string {
  const unit = ms < 1_000 ? 'millisecond' : 'second';
  const value = ms < 1_000 ? ms : ms / 1_000;
  const digits = value < 10 ? 1 : 0;
  return formatter(language, `duration ${unit} ${unitDisplay}`, {
    style: 'unit',
    unit,
    unitDisplay,
    maximumFractionDigits: digits,
  }).format(value);
}

/** Seconds in the largest unit that fits: `45 sec`, `12 min`, `3 hr`, `9 days`. */
export function span(seconds: number, language: string): string {
  // Hours up to two days: somebody who looks at running processes wants to tell yesterday from today.
  const [unit, size] = SPANS.find(([, , least]) => seconds >= least) ?? (['second', 1] as const);
  return formatter(language, `span ${unit}`, {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    maximumFractionDigits: 0,
  }).format(Math.floor(seconds / size));
}

const SPANS = [
  ['day', 86_400, 172_800],
  ['hour', 3_600, 3_600],
  ['minute', 60, 60],
] as const;

/** 50 → `50 bytes`, 1 234 567 → `1.2 MB`. */
export function bytes(size: number, language: string): string {
  const [unit, factor] = BYTES.find(([, factor]) => size >= factor) ?? (['byte', 1] as const);
  return formatter(language, `bytes ${unit}`, {
    style: 'unit',
    unit,
    unitDisplay: unit === 'byte' ? 'long' : 'short',
    maximumFractionDigits: 1,
  }).format(size / factor);
}

const BYTES = [
  ['gigabyte', 1e9],
  ['megabyte', 1e6],
  ['kilobyte', 1e3],
] as const;

/** `Nov 22, 2026, 4:26:12 PM`, in the reader's time zone. */
export const moment = (iso: string, language: string): string =>
  dates(language, 'moment', { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(iso));

/** `Nov 22`, or in another year `Nov 22, 2025`. @param nowMs the reader's time */
export function date(iso: string, language: string, nowMs: number): string {
  const at = new Date(iso);
  return at.getFullYear() === new Date(nowMs).getFullYear()
    ? dates(language, 'date', { month: 'short', day: 'numeric' }).format(at)
    : dates(language, 'date with year', { dateStyle: 'medium' }).format(at);
}

/** `November 2026`, in UTC: the gateway and the browser write the same. */
export const month = (iso: string, language: string): string =>
  dates(language, 'month', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(new Date(iso));

/** `4:26:12 PM`: the second half of `moment`. */
export const clock = (iso: string, language: string): string =>
  dates(language, 'clock', { timeStyle: 'medium' }).format(new Date(iso));

/** `4:02 – 4:26 PM`; within one minute `4:02:10 – 4:02:15 PM`. */
export function clockRange(from: string, to: string, language: string): string {
  const format = dates(language, 'minutes', { timeStyle: 'short' });
  const [first, last] = [new Date(from), new Date(to)];
  if (format.format(first) === format.format(last)) {
    return clock(from, language) === clock(to, language)
      ? clock(to, language)
      : dates(language, 'clock', { timeStyle: 'medium' }).formatRange(first, last);
  }
  // Over midnight `formatRange` writes two dates.
  if (first.getDate() !== last.getDate()) return `${format.format(first)} – ${format.format(last)}`;
  return format.formatRange(first, last);
}

/** `2026-11-22`, a day in UTC → `Nov 22`. */
export const day = (utcDay: string, language: string): string =>
  dates(language, 'day', { month: 'short', day: 'numeric', timeZone: 'UTC' }).format(new Date(`${utcDay}T00:00:00Z`));

const RELATIVE: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** `5 minutes ago`. @param nowMs  the reader's time */
export function ago(iso: string, language: string, nowMs: number): string {
  const seconds = (Date.parse(iso) - nowMs) / 1_000;
  const [unit, size] = RELATIVE.find(([, size]) => Math.abs(seconds) >= size) ?? (['second', 1] as const);
  return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(Math.round(seconds / size), unit);
}

// Making a formatter takes a hundred times as long as using it.
const numbers = new Map<string, Intl.NumberFormat>();
const times = new Map<string, Intl.DateTimeFormat>();

function formatter(language: string, name: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${language} ${name} ${options.maximumFractionDigits}`;
  let made = numbers.get(key);
  if (made === undefined) {
    made = new Intl.NumberFormat(language, options);
    numbers.set(key, made);
  }
  return made;
}

function dates(language: string, name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${language} ${name}`;
  let made = times.get(key);
  if (made === undefined) {
    made = new Intl.DateTimeFormat(language, options);
    times.set(key, made);
  }
  return made;
}
