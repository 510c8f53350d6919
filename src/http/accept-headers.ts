/**
 * Maximum characters of a header that are read; the rest is ignored. Browsers send 150. Files and refusals cost no token, and 15
 * 000 commas took 10 ms of the thread that serves calls.
 */
const MAX_LENGTH = 500;

const entriesOf = (header: string | undefined): string[] => (header ?? '').slice(0, MAX_LENGTH).split(',');

/**
 * Whether `Accept` (RFC 9110 §12.5.1) gives the first media type a higher weight than the second. Wildcards are ignored: curl sends
 * only a wildcard, and gets the default of this function's caller.
 */
export function prefers(accept: string | undefined, first: string, second: string): boolean {
  let firstWeight = 0;
  let secondWeight = 0;
  for (const range of entriesOf(accept)) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1);
    if (type === first) firstWeight = weight;
    if (type === second) secondWeight = weight;
  }
  return firstWeight > secondWeight;
}

/** Whether `Accept` admits a media type by its name or by a wildcard. A header that is absent admits all. */
export function admits(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return true;
  const wanted = [type, `${type.split('/')[0]}/*`, '*/*'];
  return entriesOf(accept).some((range) => {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return wanted.includes(name) && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

/** Whether the caller takes a content coding (RFC 9110 §12.5.3): it says so by name, and not with weight 0. */
export function takes(acceptEncoding: string | undefined, coding: 'br' | 'gzip'): boolean {
  return entriesOf(acceptEncoding).some((entry) => {
    const [name = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
