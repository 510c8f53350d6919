import { hash } from 'node:crypto';
import { DiscoverWriter } from '../present.js';
import { fold } from './words.js';
const writer = new DiscoverWriter();
export function digestOf(listing, quality) {
    // The very text that answers show, so that no field of it can be forgotten here. The other languages differ in labels only.
    const bytes = Buffer.from(hash('sha1', writer.write(listing, quality, 'en'), 'base64'), 'base64');
    return [bytes.readInt32LE(0), bytes.readInt32LE(4), bytes.readInt32LE(8)];
}
/**
 * Maximum number of characters of a folded name that count in the sort. It bounds the length of cursors, because NFKC can turn
 * one character into 18.
 */
const MAX_SORT_CHARACTERS = 120;
export const sortedName = (name) => fold(name).slice(0, MAX_SORT_CHARACTERS);
//# sourceMappingURL=entry.js.map