import type { TemplateSegment } from './template.ts';

/**
 * Different spellings of a path that some server reads as the same path. If a gateway only compared paths byte for byte, a caller
 * could reach an expensive operation through a cheaper one that also matches: `/{name}` matches `/REPORT` and `/%72eport`, and many
 * servers take both for `/report`.
 */

/** A segment that is one segment for every server. Most are, so this is checked first. */
const ORDINARY = /^[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*$/;

/** A segment that is already in its loose form. */
const LOOSE = /^[a-z0-9\-_~]+$/;

/** A segment that a server may split, shorten or decode twice: `{name}` does not match it. */
const SPLITTABLE = /[;\\]|%(?:2f|5c|3b|25|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})/i;

/** The same in compatibility form (NFKC): `／` is a slash there. A server that drops leading dots or spaces may see no segment at all. */
const SPLITTABLE_TEXT = /^[.\s]|[/\\;%]/;

/** The part that web frameworks take for the format of the answer and cut off: `/report.json` is `/report`. */
const EXTENSION = /^\.[a-z][a-z0-9]{0,9}$/;

/** How often a path is decoded. A server behind another one makes it twice; one more is added for safety. */
const MAX_DECODINGS = 3;

/**
 * Maximum segments of a path that servers may split differently. It bounds the time of `mayMean`; a longer path may mean anything.
 */
const MAX_UNSTEADY_SEGMENTS = 64;

/** The possible readings of a path. */
export type Readings = {
  /**
   * The segments as the most lenient servers read them. Two readings if some servers cut the path short; null: it could mean
   * anything.
   */
  readonly all: readonly (readonly string[])[] | null;
  /** Whether every server sees as many segments as the gateway, so that `{name}` is exactly one of them. */
  readonly isSteady: boolean;
  readonly endsInSlash: boolean;
};

/** Whether `{name}` may stand for this segment. */
export function isOneSegment(segment: string): boolean {
  if (ORDINARY.test(segment)) return true;
  if (SPLITTABLE.test(segment)) return false;
  const text = decoded(segment);
  return text !== null && !SPLITTABLE_TEXT.test(text) && looseSegment(text) !== '';
}

/** The percent-decoded text in compatibility form, or null when it is not valid UTF-8: servers disagree on what such bytes mean. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text).normalize('NFKC');
  } catch {
    return null;
  }
}

/** One segment as the most lenient server reads it: in one letter case, without surrounding spaces and trailing dots. */
function looseSegment(segment: string): string {
  if (LOOSE.test(segment)) return segment;
  let end = segment.length;
  // A loop, because a regular expression that ends in `$` tries from each of the dots of `a....b`: 0.2 s for a path of 15 000.
  while (end > 0 && /[\s.\p{Cc}]/u.test(segment[end - 1] as string)) end--;
  // Converted to upper case first: some servers compare the letters `ı` and `i`, or `ß` and `ss`, that way. The dot is what remains
  // of `İ`.
  const folded = segment.slice(0, end).toUpperCase().toLowerCase().replaceAll('\u0307', '');
  return folded.replace(/^[\s\p{Cc}]+/u, '');
}

export function readingsOf(path: string): Readings {
  const all = looseReadings(path);
  const endsInSlash = path.endsWith('/');
  const segments = (endsInSlash ? path.slice(1, -1) : path.slice(1)).split('/');
  const isSteady = all?.[0]?.length === segments.length && segments.every(isOneSegment);
  return { all, isSteady, endsInSlash };
}

/**
 * Null for bytes that are not UTF-8, for `;` and NUL (servers cut off what follows them, some before they decode the path and some
 * after), and for dot segments that show only when the path is decoded twice. What follows `?` or `#` is cut off by servers that
 * decode the path before they read it.
 */
function looseReadings(path: string): string[][] | null {
  let text = path;
  for (let i = 0; i < MAX_DECODINGS; i++) {
    const next = decoded(text);
    if (next === null) return null;
    if (next === text) break;
    text = next;
  }
  if (/[;\0]/.test(text)) return null;
  const cut = text.search(/[?#]/);
  const readings = (cut === -1 ? [text] : [text, text.slice(0, cut)]).map((read) =>
    read.replaceAll('\\', '/').split('/'),
  );
  if (readings.some((segments) => segments.some(isDots))) return null;
  return readings.map((segments) => segments.map(looseSegment).filter((segment) => segment !== ''));
}

const isDots = (segment: string): boolean =>
  segment[0] !== undefined && /^[\s\p{Cc}]*\.{1,2}[\s\p{Cc}]*$/u.test(segment);

/** A template whose literals are spelled loosely, to be compared with `Readings`. */
export type LooseTemplate = readonly TemplateSegment[];

export function looseTemplate(template: readonly TemplateSegment[]): LooseTemplate {
  return template.flatMap((segment): TemplateSegment | TemplateSegment[] => {
    if (segment.kind !== 'literal' || LOOSE.test(segment.text)) return segment;
    const texts = looseReadings(segment.text)?.[0] ?? [segment.text];
    // Most literals are already in their loose form: reusing the object saves memory.
    return texts.length === 1 && texts[0] === segment.text ? segment : texts.map((text) => ({ kind: 'literal', text }));
  });
}

/** The template matches the path byte for byte. Whether every server reads the path as one that it matches. */
export function surelyMatches({ all }: Readings, template: LooseTemplate): boolean {
  // `/*` matches every path that a server may see.
  if (template[0]?.kind === 'rest') return true;
  return all?.every((segments) => matchesSteadily(segments, template, 1)) ?? false;
}

/** Whether some server might read a path as one that the template matches. */
export function mayMean({ all, isSteady, endsInSlash }: Readings, template: LooseTemplate): boolean {
  if (all === null) return true;
  if (!isSteady) return all.some((segments) => matchesSomehow(segments, template));
  // After a last slash, some server may see an empty segment. A path that is cut short may end in one.
  const mayEndEmpty = endsInSlash || all.length > 1;
  return all.some(
    (segments) =>
      matchesSteadily(segments, template, 1) || (mayEndEmpty && matchesSteadily([...segments, ''], template, 0)),
  );
}

/** `{name}` stands for exactly one segment, and `*` for at least `minRest`. */
function matchesSteadily(segments: readonly string[], template: LooseTemplate, minRest: number): boolean {
  for (const [at, segment] of template.entries()) {
    if (segment.kind === 'rest') return segments.length - at >= minRest;
    const text = segments[at];
    if (text === undefined) return false;
    if (segment.kind === 'literal' && !mayBe(text, segment.text, at === segments.length - 1)) return false;
  }
  return template.length === segments.length;
}

/** `{name}` and `*` stand for any number of segments: a server may split or drop what the gateway sees as one. */
function matchesSomehow(segments: readonly string[], template: LooseTemplate): boolean {
  const { length } = segments;
  if (length > MAX_UNSTEADY_SEGMENTS) return true;
  // A server may drop a last segment that is only an extension, and then the previous one is the last.
  const end = segments.at(-1)?.startsWith('.') ? length - 1 : length;
  // The positions in `segments` that the template's segments so far can reach. The time is bounded by the product of the lengths.
  let reached: boolean[] = [true];
  for (const segment of template) {
    const first = reached.indexOf(true);
    if (first === -1) return false;
    if (segment.kind === 'rest') return true;
    const next: boolean[] = new Array(length + 1).fill(false);
    if (segment.kind === 'name') next.fill(true, first);
    else {
      for (let at = first; at < length; at++) {
        if (reached[at] && mayBe(segments[at] as string, segment.text, at >= end - 1)) next[at + 1] = true;
      }
      if (segment === template.at(-1) && segment.text.startsWith('.'))
        reached.forEach((is, at) => {
          next[at] ||= is;
        });
    }
    reached = next;
  }
  return reached[length] === true || reached[end] === true;
}

/**
 * Whether a loose segment may be a literal: the same text or, at the end of a path, one with an extension and one without. Rails
 * takes anything after a dot for an extension, and Spring did.
 */
function mayBe(segment: string, literal: string, isLast: boolean): boolean {
  if (segment === literal) return true;
  if (!isLast) return false;
  if (segment.startsWith(literal)) return segment[literal.length] === '.';
  return literal.startsWith(segment) && EXTENSION.test(literal.slice(segment.length));
}

/**
 * Whether every server that has both templates serves a path by the first one, which the path matches byte for byte: from left to
 * right, a literal beats `{name}`, and `{name}` beats `*`.
 */
export function comesFirst(found: LooseTemplate, other: LooseTemplate, readings: Readings): boolean {
  if (!readings.isSteady || !surelyMatches(readings, found)) return false;
  for (const [at, { kind }] of found.entries()) {
    const otherKind = other[at]?.kind;
    if (kind === otherKind) continue;
    return kind === 'literal' || (kind === 'name' && otherKind === 'rest');
  }
  // They differ in additional segments that stand for nothing, or in a slash or an extension at the end.
  return other.length > found.length || !readings.endsInSlash;
}
