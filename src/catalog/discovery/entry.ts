import { hash } from 'node:crypto';
import { DiscoverWriter, type Listed } from '../present.ts';
import type { Signature } from './signatures.ts';
import { fold, type SearchedText } from './words.ts';

/**
 * An active listing as discovery keeps it. Immutable: a change of the listing, or of what is shown beside it, makes a new entry, so an
 * answer that is being sent, and has the entries of one moment, keeps that moment, whatever changes meanwhile.
 */
export type Entry = Listed & {
  /** The listing's number while it is listed. A change keeps it; after a removal it is given to another listing. */
  readonly slot: number;
  /** The value by which names are sorted. */
  readonly name: string;
  /** The same object for as long as name and description are the same. */
  readonly signature: Signature;
  /** Null when the texts of all listings exceed their bound: then it is folded anew for each search. */
  readonly searched: SearchedText | null;
  readonly digest: Digest;
};

const writer = new DiscoverWriter();

/**
 * A hash of what an answer shows of a listing. Digests of several listings are added, number by number in 32 bits, so the digest of
 * a set follows each change of one member in a few nanoseconds, and does not depend on the order in which the changes came.
 */
export type Digest = readonly [number, number, number];

export function digestOf(listed: Listed): Digest {
  // The very text that answers show, so that no field of it can be forgotten here. The other languages differ in labels only.
  const bytes = Buffer.from(hash('sha1', writer.write(listed, 'en'), 'base64'), 'base64');
  return [bytes.readInt32LE(0), bytes.readInt32LE(4), bytes.readInt32LE(8)];
}

/**
 * Maximum number of characters of a folded name that count in the sort. It bounds the length of cursors, because NFKC can turn
 * one character into 18.
 */
const MAX_SORT_CHARACTERS = 120;

export const sortedName = (name: string): string => fold(name).slice(0, MAX_SORT_CHARACTERS);
