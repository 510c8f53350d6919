import { ApiError } from '../errors.ts';

/** The languages of labels (docs/api.md, 'Catalog'), as BCP 47 tags. The first is the default. */
export const LANGUAGES = ['en', 'zh-TW', 'zh-CN', 'ja', 'ko', 'es', 'de', 'fr'] as const;

export type Language = (typeof LANGUAGES)[number];

const DEFAULT_LANGUAGE: Language = 'en';

/** Maximum number of characters of a header that are read; the rest is ignored. Browsers send far fewer. */
const MAX_HEADER_LENGTH = 1_000;

const TAG = /^[a-z]{1,8}(-[a-z0-9]{1,8})*$/;
const TRADITIONAL = new Set(['hant', 'tw', 'hk', 'mo']);
const SIMPLE: ReadonlyMap<string, Language> = new Map(
  LANGUAGES.filter((language) => !language.includes('-')).map((language) => [language, language]),
);

/**
 * The language for a BCP 47 tag in upper or lower case, regional variants included (`es-MX` → `es`). Null for other languages.
 * Chinese is Traditional if script or region says so (`zh-Hant`, `zh-TW`, `zh-HK`, `zh-MO`), otherwise Simplified. The script
 * takes precedence over the region: `zh-Hans-HK` is Simplified.
 */
export function languageOf(tag: string): Language | null {
  const lower = tag.toLowerCase();
  if (!TAG.test(lower)) return null;
  const [primary, ...subtags] = lower.split('-') as [string, ...string[]];
  if (primary !== 'zh') return SIMPLE.get(primary) ?? null;
  if (subtags.includes('hans')) return 'zh-CN';
  return subtags.some((subtag) => TRADITIONAL.has(subtag)) ? 'zh-TW' : 'zh-CN';
}

/**
 * The language that an `Accept-Language` header prefers (RFC 9110 §12.5.4); English when it names none of ours. Of languages with
 * equal weight, the first named wins. `*` means every language not named, English first. Malformed entries are ignored.
 */
export function negotiateLanguage(header: string | undefined): Language {
  if (header === undefined) return DEFAULT_LANGUAGE;
  const weights = new Map<Language, number>();
  let wildcard = 0;
  for (const entry of header.slice(0, MAX_HEADER_LENGTH).split(',')) {
    const parsed = parseEntry(entry);
    if (parsed === null) continue;
    if (parsed.range === '*') wildcard = Math.max(wildcard, parsed.weight);
    const language = languageOf(parsed.range);
    // `es-MX, es;q=0.5` names `es` twice: the higher weight counts.
    if (language !== null) weights.set(language, Math.max(weights.get(language) ?? 0, parsed.weight));
  }
  // Added after the named languages, so that these win at equal weight.
  for (const language of LANGUAGES) if (!weights.has(language)) weights.set(language, wildcard);
  let best: Language = DEFAULT_LANGUAGE;
  let bestWeight = 0;
  for (const [language, weight] of weights) {
    if (weight > bestWeight) [best, bestWeight] = [language, weight];
  }
  return best;
}

/**
 * The language of an answer: the one in the `lang` parameter, otherwise the one that `Accept-Language` prefers.
 *
 * @throws ApiError `invalid_request` for an unsupported `lang`: a client that asks for one language must not get another
 */
export function chooseLanguage(lang: string | undefined, acceptLanguage: string | undefined): Language {
  if (lang === undefined) return negotiateLanguage(acceptLanguage);
  const language = languageOf(lang);
  if (language === null) throw new ApiError('invalid_request', `lang: must be one of ${LANGUAGES.join(', ')}.`);
  return language;
}

/** The headers of an answer whose labels are in this language. */
export const languageHeaders = (language: Language) => ({ 'Content-Language': language, Vary: 'Accept-Language' });

const ENTRY = /^[ \t]*([a-z0-9-]+|\*)[ \t]*(?:;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$/i;

function parseEntry(entry: string): { readonly range: string; readonly weight: number } | null {
  const match = ENTRY.exec(entry);
  return match === null ? null : { range: match[1] as string, weight: Number(match[2] ?? '1') };
}
