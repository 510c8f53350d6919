/** `118 MB` */
export const bytes = (value: number, language: string): string =>
  new Intl.NumberFormat(language, { style: 'unit', unit: 'megabyte', maximumFractionDigits: 0 }).format(value / 1e6);

/** Seconds as `45 s`, `12 min`, `3 h`, `9 d`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
