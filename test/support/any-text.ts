import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };

/**
 * Each character that Unicode may have. fast-check's own (`unit: 'binary'`, and within `fc.webPath()` and its like) makes a table of a
 * million characters, which takes a worker a second and 120 MB.
 */
const character = fc.integer({ min: 0, max: 0x10ffff - SURROGATES.count }).map(
  (index) => String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count),
  (text) => {
    const point =
      typeof text === 'string' && Array.from(text).length === 1 ? (text.codePointAt(0) as number) : Number.NaN;
    if (Number.isNaN(point) || !(text as string).isWellFormed()) throw new Error('no such character');
    return point < SURROGATES.first ? point : point - SURROGATES.count;
  },
);

/** Texts of any characters, none of them half a surrogate pair. */
export const anyText = (
  bounds: { readonly minLength?: number; readonly maxLength?: number } = {},
): fc.Arbitrary<string> => fc.string({ ...bounds, unit: character });

const segmentPart = fc.oneof(
  { weight: 10, arbitrary: fc.stringMatching(/^[A-Za-z0-9._~!$&'()*+,;=:@-]{1,8}$/) },
  { weight: 1, arbitrary: anyText({ minLength: 1, maxLength: 1 }).map(encodeURIComponent) },
);
const segment = fc.array(segmentPart, { maxLength: 4 }).map((parts) => parts.join(''));

/** Paths of RFC 3986, with a slash at the beginning. */
export const webPath = (): fc.Arbitrary<string> =>
  fc.array(segment, { minLength: 1, maxLength: 6 }).map((segments) => `/${segments.join('/')}`);

/** Addresses of http and https, with and without a query and a fragment. */
export const webUrl = (): fc.Arbitrary<string> => {
  const rest = (sign: string) => fc.option(webPath(), { nil: '' }).map((text) => (text === '' ? '' : `${sign}${text}`));
  return fc
    .tuple(fc.constantFrom('http', 'https'), fc.domain(), webPath(), rest('?'), rest('#'))
    .map(([scheme, host, path, query, fragment]) => `${scheme}://${host}${path}${query}${fragment}`);
};
