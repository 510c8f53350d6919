import type { Terms } from '../listing.ts';
import {
  type HttpTerms,
  isTool,
  operationKey,
  ownPriceOf,
  parseTerms,
  type ToolTerms,
} from '../operations/operation.ts';
import { parseTemplate, type TemplateSegment } from '../operations/template.ts';
import { mayExceed, type Price, priceOf } from '../price.ts';

type Entry = Price & {
  /** The key made by `operationKey`. */
  readonly key: string;
  readonly method: string;
  readonly segments: readonly TemplateSegment[];
};

/**
 * Whether some call may cost more under the second terms than under the first. A call that either of them refuses costs nothing
 * there, and does not count: a provider may end an operation, or offer a new one, at any time.
 *
 * It may say yes although no path exists that would cost more, but a no is always right. Each check below covers one way in which
 * the same call can cost more. At most 200 × 200 templates are compared, which takes a few milliseconds.
 *
 * Tested by test/catalog/notice/may-cost-more.test.ts, against the prices that calls really have.
 */
export function mayCostMore(before: Terms, after: Terms): boolean {
  if (mayExceed(after, before) || after.freeCalls < before.freeCalls) return true;
  const was = entriesOf(before);
  const is = entriesOf(after);
  return (
    losesFreeCalls(before, after, was, is) ||
    fallsToListingPrice(before, after, was, is) ||
    is.some((entry) => costsMoreThanBefore(entry, before, was)) ||
    was.some((entry) => isReplacedByDearer(entry, is))
  );
}

/**
 * Free calls cover no operation that costs more than the listing. So a lower price of the listing can take free calls away from an
 * operation. It does not if the operation cost more before, too, and no call of a removed operation falls under it now.
 */
function losesFreeCalls(before: Terms, after: Terms, was: readonly Entry[], is: readonly Entry[]): boolean {
  if (before.freeCalls === 0 || !mayExceed(before, after)) return false;
  const left = new Set(is.map(({ key }) => key));
  const gone = was.filter(({ key }) => !left.has(key));
  return is.some((entry) => {
    if (!mayExceed(entry, after)) return false;
    const known = was.find(({ key }) => key === entry.key);
    const hadNone = known !== undefined && mayExceed(known, before);
    return !hadNone || gone.some((other) => mayMatchTheSame(entry, other));
  });
}

/**
 * Without `only_operations`, a call costs the listing's price if no operation matches it, or if a service might read its path as
 * one that none matches. The first case concerns removed operations; the second concerns all of them, if there was
 * `only_operations` before.
 */
function fallsToListingPrice(before: Terms, after: Terms, was: readonly Entry[], is: readonly Entry[]): boolean {
  if (after.onlyOperations) return false;
  const left = new Set(is.map(({ key }) => key));
  return was.some((entry) => mayExceed(after, entry) && (before.onlyOperations || !left.has(entry.key)));
}

/** The operation costs more than before; or it is new, and its calls cost less before, under another operation or as any call. */
function costsMoreThanBefore(entry: Entry, before: Terms, was: readonly Entry[]): boolean {
  const known = was.find(({ key }) => key === entry.key);
  if (known !== undefined) return mayExceed(entry, known);
  if (!before.onlyOperations && mayExceed(entry, before)) return true;
  return was.some((other) => mayExceed(entry, other) && mayMatchTheSame(entry, other));
}

/** The operation was removed, and one that costs more may match its calls now. */
function isReplacedByDearer(gone: Entry, is: readonly Entry[]): boolean {
  if (is.some(({ key }) => key === gone.key)) return false;
  return is.some((entry) => mayExceed(entry, gone) && mayMatchTheSame(entry, gone));
}

function mayMatchTheSame(a: Entry, b: Entry): boolean {
  if (a.method !== b.method) return false;
  for (let i = 0; ; i++) {
    const [x, y] = [a.segments[i], b.segments[i]];
    if (x === undefined && y === undefined) return true;
    if (x?.kind === 'rest' || y?.kind === 'rest') return true;
    if (x === undefined || y === undefined) return false;
    if (x.kind === 'literal' && y.kind === 'literal' && x.text !== y.text) return false;
  }
}

function entriesOf(terms: Terms): Entry[] {
  return parseTerms(terms.operationTerms ?? '[]').map((term) => entryOf(term, terms));
}

function entryOf(term: HttpTerms | ToolTerms, listing: Price): Entry {
  const price = priceOf(ownPriceOf(term), listing);
  if (isTool(term)) {
    const [tool] = term;
    const segments = [{ kind: 'literal', text: tool }] as const;
    return { key: operationKey({ tool }), method: '', segments, ...price };
  }
  const [method, path] = term;
  const parsed = parseTemplate(path);
  if ('fault' in parsed) throw new Error(`a stored operation has an invalid path: ${parsed.fault}`);
  return { key: operationKey({ method, path }), method, segments: parsed.segments, ...price };
}
