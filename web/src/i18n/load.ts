import type { Messages } from './i18n.tsx';
import type { Language } from './languages.ts';
import en from './messages/en.json';

// One file for each language, loaded when a page in that language is. English is in the page's own script.
const OTHERS = import.meta.glob<Messages>(['./messages/*.json', '!./messages/en.json'], { import: 'default' });

export async function loadMessages(language: Language): Promise<Messages> {
  const load = OTHERS[`./messages/${language}.json`];
  return load === undefined ? en : { ...en, ...(await load()) };
}
