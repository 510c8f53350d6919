import { count } from '../../i18n/format.ts';

/** `1 wallet`, `2 wallets` */
export const several = (value: number, thing: string, language: string): string =>
  `${count(value, language)} ${thing}${value === 1 ? '' : 's'}`;

/** `118 MB` */
export const bytes = (value: number, language: string): string =>
  new Intl.NumberFormat(language, { style: 'unit', unit: 'megabyte', maximumFractionDigits: 0 }).format(value / 1e6);

/** Seconds as `45 s`, `12 min`, `3 h`, `9 d`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** `5:26:33 PM` today, else `Nov 21, 5:26:33 PM`, with the year if it is another: most of what an operator looks at is of today. */
export function shortMoment(iso: string, language: string, now = new Date()): string {
  const at = new Date(iso);
  const isToday = at.toDateString() === now.toDateString();
  const isThisYear = at.getFullYear() === now.getFullYear();
  const day: Intl.DateTimeFormatOptions = isToday ? {} : { month: 'short', day: 'numeric' };
  const year: Intl.DateTimeFormatOptions = isThisYear ? {} : { year: 'numeric' };
  const time: Intl.DateTimeFormatOptions = { hour: 'numeric', minute: '2-digit', second: '2-digit' };
  return new Intl.DateTimeFormat(language, { ...year, ...day, ...time }).format(at);
}

/** `Nov 22, 2026` */
export const date = (iso: string, language: string): string =>
  new Intl.DateTimeFormat(language, { dateStyle: 'medium' }).format(new Date(iso));

/** Cores in use, as a share of one: `12%`. */
export const share = (cores: number | null, language: string): string =>
  cores === null ? '–' : new Intl.NumberFormat(language, { style: 'percent' }).format(cores);
