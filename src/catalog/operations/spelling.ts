import type { TemplateSegment } from './template.ts';

/**
 * Different spellings of a path that some server reads as the same path. A gateway that compared paths byte for byte only would let
 * a caller reach a dear operation through a cheaper one that also matches: `/{name}` matches `/REPORT` and `/%72eport`, and many
 * servers take both for `/report`.
 */

/**
 * A path whose segments every server sees as they are: single slashes, no encoding, no parameters (`;`), no backslash, no empty last
 * segment, none that begins with a dot. Only letter case, an extension (`/report.json`) and trailing dots can then make two spellings of one path.
 */
const PLAIN = /^(?:\/[A-Za-z0-9\-_~!$&'()*+,=:@][A-Za-z0-9\-._~!$&'()*+,=:@]*)+$/;

/** A segment that is one segment for every server: most are, so they are told apart first. */
const ORDINARY = /^[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*$/;

/** A segment that a server may split, shorten or decode twice: `{name}` does not match it. */
const SPLITTABLE = /[;\\]|%(?:2f|5c|3b|25|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})/i;

/** What web frameworks take for the format of the answer and cut off: `/report.json` is `/report`. */
const EXTENSION = /^\.[a-z][a-z0-9]{0,9}$/;

/** How often a path is decoded. Servers behind servers decode twice; one more is allowed for. */
const MAX_DECODINGS = 3;

export const isPlain = (path: string): boolean => PLAIN.test(path);

/** Whether `{name}` may stand for this segment. */
export function isOneSegment(segment: string): boolean {
  if (ORDINARY.test(segment)) return true;
  if (SPLITTABLE.test(segment)) return false;
  const text = decoded(segment);
  // A server that drops spaces, dots or an extension (`.json`) would see no segment at all.
  return text !== null && !/^[.\s]/.test(text) && looseSegment(text) !== '';
}

/** The percent-decoded text, or null when it is not valid UTF-8: servers disagree on what such bytes mean. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** One segment as the most generous server reads it: decoded, in lower case, in compatibility form, without trailing dots and spaces. */
function looseSegment(segment: string): string {
  return segment
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s.\p{Cc}]+$/u, '')
    .replace(/^[\s\p{Cc}]+/u, '');
}

/**
 * The segments of a path as the most generous server reads them; null if it could mean anything: bytes that are not UTF-8, `;` and
 * NUL. Servers cut off what follows the latter two, some before they decode the path and some after.
 */
export function looseSegments(path: string): string[] | null {
  let text = path;
  for (let i = 0; i < MAX_DECODINGS && text.includes('%'); i++) {
    const next = decoded(text);
    if (next === null) return null;
    text = next;
  }
  if (/[;\0]/.test(text)) return null;
  const segments = text
    .replaceAll('\\', '/')
    .split('/')
    .map(looseSegment)
    .filter((segment) => segment !== '');
  if (EXTENSION.test(segments.at(-1) ?? '')) segments.pop();
  return segments;
}

/** A template whose literals are spelled loosely, to be compared with `looseSegments`. */
export type LooseTemplate = readonly TemplateSegment[];

export function looseTemplate(template: readonly TemplateSegment[]): LooseTemplate {
  return template.flatMap((segment): TemplateSegment[] => {
    if (segment.kind !== 'literal') return [segment];
    return (looseSegments(segment.text) ?? [segment.text]).map((text) => ({ kind: 'literal', text }));
  });
}

/**
 * Whether a server might take a path for one that the template matches.
 *
 * @param segments  of `looseSegments`
 * @param plain     whether the path is plain: then `{name}` stands for exactly one segment, and `*` for at least one. Otherwise each
 *                  stands for any number, because a server may split or drop what the gateway sees as one segment
 */
export function mayMean(segments: readonly string[], template: LooseTemplate, plain: boolean): boolean {
  // The positions in `segments` that the template's segments so far can reach. The time is bounded by the product of the lengths.
  let reached = new Set([0]);
  for (const segment of template) {
    const next = new Set<number>();
    for (const at of reached) {
      const left = segments.length - at;
      if (segment.kind === 'rest') {
        if (!plain || left > 0) return true;
      } else if (segment.kind === 'literal') {
        if (left > 0 && mayBe(segments[at] as string, segment.text, left === 1)) next.add(at + 1);
      } else {
        for (let count = plain ? 1 : 0; count <= (plain ? Math.min(1, left) : left); count++) next.add(at + count);
      }
    }
    reached = next;
  }
  return reached.has(segments.length);
}

/** Whether a loose segment may be a literal: the same text or, at the end of a path, one with an extension and one without. */
function mayBe(segment: string, literal: string, isLast: boolean): boolean {
  if (segment === literal) return true;
  if (!isLast) return false;
  if (segment.startsWith(literal)) return EXTENSION.test(segment.slice(literal.length));
  return literal.startsWith(segment) && EXTENSION.test(literal.slice(segment.length));
}
