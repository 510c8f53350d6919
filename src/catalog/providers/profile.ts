import { PRODUCT } from '../../version.ts';
import { fold } from '../discovery/words.ts';
import { docsUrlFault } from '../links.ts';

/** What a provider says about itself to buyers. Nobody has checked it. At least one of the three is set. */
export type Profile = {
  readonly displayName: string | null;
  /** An e-mail address, or any other way of reaching the provider. */
  readonly contact: string | null;
  /** A page about the provider. */
  readonly url: string | null;
};

export const MAX_DISPLAY_NAME_LENGTH = 60;
export const MAX_CONTACT_LENGTH = 200;
export const MAX_PROFILE_URL_LENGTH = 500;

/**
 * Control characters, line ends, characters that change the direction of text, and other invisible ones: with them a text can look
 * like another one. ZWNJ and ZWJ pass, because Persian, Indic scripts and emoji need them.
 */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

/** What is wrong with a text that somebody writes for others to read, or null. It may not contain invisible characters. */
export const unseenFault = (text: string): string | null =>
  UNSEEN.test(text) ? 'must not contain control characters or other invisible characters' : null;

/**
 * What is wrong with a display name, or null. The caller must trim it first.
 *
 * @param operatorName nobody may be mistaken for the operator or the gateway; null: the operator has no name
 */
export function displayNameFault(name: string, operatorName: string | null): string | null {
  const length = [...name].length;
  if (length < 1 || length > MAX_DISPLAY_NAME_LENGTH) {
    return `must have 1 to ${MAX_DISPLAY_NAME_LENGTH} characters, not counting spaces around it`;
  }
  const unseen = unseenFault(name);
  if (unseen !== null) return unseen;
  if (spelled(name) === '') return 'must have a letter or a digit';
  if (looksLike(name, PRODUCT)) return 'is the name of this gateway';
  if (operatorName !== null && looksLike(name, operatorName)) return 'is the name of this gateway’s operator';
  return null;
}

/** What is wrong with a contact, or null. The caller must trim it first. */
export function contactFault(contact: string): string | null {
  const length = [...contact].length;
  if (length < 1 || length > MAX_CONTACT_LENGTH) {
    return `must have 1 to ${MAX_CONTACT_LENGTH} characters, not counting spaces around it`;
  }
  return unseenFault(contact);
}

/** What is wrong with the URL of a page about a provider, or null. */
export function profileUrlFault(url: string): string | null {
  if (url.length > MAX_PROFILE_URL_LENGTH) return `must be at most ${MAX_PROFILE_URL_LENGTH} characters`;
  return unseenFault(url) ?? docsUrlFault(url);
}

/** Whether people may take one name for the other: case, width, spaces and punctuation make no difference. */
const looksLike = (name: string, other: string): boolean =>
  spelled(other) === '' ? fold(name).trim() === fold(other).trim() : spelled(name) === spelled(other);

/** The letters and digits of a name, without invisible ones. */
const spelled = (name: string): string =>
  fold(name).replace(/[^\p{L}\p{M}\p{N}]|\p{Default_Ignorable_Code_Point}/gu, '');

export const isSameProfile = (a: Profile | null, b: Profile | null): boolean =>
  a?.displayName === b?.displayName && a?.contact === b?.contact && a?.url === b?.url;
