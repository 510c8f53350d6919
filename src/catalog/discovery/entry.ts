import { hash } from 'node:crypto';
import { DiscoverWriter, type Listed } from '../present.ts';
import type { Signature } from './signatures.ts';
import { fold, type SearchedText } from './words.ts';

/**
 * An active listing as discovery keeps it. It is immutable: a change of the listing, or of its `beside`, makes a new entry. So an
 * answer that is being sent has the entries of one moment, and keeps them whatever changes meanwhile.
 */
export type Entry = Listed & {
  /** The listing's number while it is listed. A change keeps it; after a removal another listing gets it. */
  readonly slot: number;
  /** The value by which names are sorted. */
  readonly name: string;
  /** The same object until name or description changes. */
  readonly signature: Signature;
  /** Null if the texts of all listings exceed their bound: the text is then folded anew for each search. */
  readonly searched: SearchedText | null;
  readonly digest: Digest;
};

const writer = new DiscoverWriter();

/**
 * A hash of what an answer shows of a listing. Digests of several listings are added, number by number in 32 bits. So the digest of
 * a set is updated in a few nanoseconds when a member changes, and does not depend on the order of the changes.
 */
export type Digest = readonly [number, number, number];

export function digestOf(listed: Listed): Digest {
  // The exact text that answers show, so that no field can be forgotten here. Other languages differ only in labels.
  const bytes = Buffer.from(hash('sha1', writer.write(listed, 'en'), 'base64'), 'base64');
  return [bytes.readInt32LE(0), bytes.readInt32LE(4), bytes.readInt32LE(8)];
}

/**
 * Maximum number of characters of a folded name that count in the sort. It bounds the length of cursors, because NFKC can turn
 * one character into 18.
 */
const MAX_SORT_CHARACTERS = 120;

export const sortedName = (name: string): string => fold(name).slice(0, MAX_SORT_CHARACTERS);
