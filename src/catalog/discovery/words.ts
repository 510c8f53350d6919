const IS_ASCII = /^[\0-\x7f]*$/;

/**
 * The text without differences of case and width: 'ＡＢＣ' is found by 'abc', 'STRASSE' by 'straße', 'İstanbul' by 'istanbul'.
 * Lower-casing alone would not suffice: the upper case of 'ß' is different, and 'Σ' becomes 'ς' or 'σ' depending on what follows,
 * which a fragment of a word does not show.
 */
export function fold(text: string): string {
  if (IS_ASCII.test(text)) return text.toLowerCase();
  const lower = text.normalize('NFKC').toUpperCase().toLowerCase();
  return lower.replaceAll('i\u0307', 'i').replaceAll('ς', 'σ').normalize('NFKC');
}

/** The words of a query: folded, each once, sorted. */
export function wordsOf(query: string): string[] {
  return [...new Set(fold(query).split(/\s+/u))].filter((word) => word !== '').sort();
}

/** The searched text of a listing: folded name, line break, folded description. */
export type SearchedText = { readonly text: string; readonly nameLength: number };

/** A searched word contains no white space, so it cannot match across the end of the name into the description. */
export function searchedText(name: string, description: string): SearchedText {
  const folded = fold(name);
  return { text: `${folded}\n${fold(description)}`, nameLength: folded.length };
}

/** How well a word matches, from best to worst. The ranks of all words of a query are added up. */
const NAME_WORD = 0;
const NAME_PART = 1;
const DESCRIPTION_WORD = 2;
const DESCRIPTION_PART = 3;
/**
 * Maximum rank of a match; all matches that would rank lower are equal. It bounds the passes over the order of a catalog: one for
 * each rank that occurs. Queries of up to ten words stay below it.
 */
export const MAX_RANK = 30;
/** The rank of an entry that does not match. */
export const NO_MATCH = 255;
/**
 * Maximum occurrences of a word in a listing that are examined to find one that is a whole word. A description of 2 000 times the
 * same letter would otherwise take 20 µs for that letter.
 */
const MAX_OCCURRENCES = 16;

/** 0 (all words are words of the name) to MAX_RANK, or NO_MATCH unless every word occurs in name or description. */
export function rankOf({ text, nameLength }: SearchedText, words: readonly string[]): number {
  let rank = 0;
  for (const word of words) {
    const first = text.indexOf(word);
    if (first === -1) return NO_MATCH;
    rank += rankOfWord(text, nameLength, word, first);
  }
  return Math.min(rank, MAX_RANK);
}

function rankOfWord(text: string, nameLength: number, word: string, first: number): number {
  let best = DESCRIPTION_PART;
  for (let at = first, n = 0; at !== -1 && n < MAX_OCCURRENCES; at = text.indexOf(word, at + 1), n++) {
    const inName = at < nameLength;
    // If the name does not contain a whole word, the description cannot improve the rank.
    if (!inName && best === NAME_PART) return NAME_PART;
    if (isWhole(text, at, at + word.length)) return inName ? NAME_WORD : DESCRIPTION_WORD;
    if (inName) best = NAME_PART;
  }
  return best;
}

/** Marks count as letters: in many scripts a vowel is a mark that follows its consonant. */
const LETTER_OR_DIGIT = /[\p{L}\p{M}\p{N}]/u;
const isLetterAt = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at);
  if (code < 0x80) return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
  const isSecondHalf = code >= 0xdc00 && code <= 0xdfff && at > 0;
  return LETTER_OR_DIGIT.test(String.fromCodePoint(text.codePointAt(isSecondHalf ? at - 1 : at) as number));
};

/** Whether there is neither a letter nor a digit directly before or after. In scripts without spaces that is rare. */
const isWhole = (text: string, begin: number, end: number): boolean =>
  (begin === 0 || !isLetterAt(text, begin - 1)) && (end >= text.length || !isLetterAt(text, end));
