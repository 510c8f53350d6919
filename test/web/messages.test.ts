// The words of the pages, in eight languages: each file says everything that en.json says, with the same variables.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { LANGUAGES } from '../../src/catalog/languages.ts';
import { LANGUAGES as PAGE_LANGUAGES } from '../../web/src/i18n/languages.ts';

const FOLDER = path.resolve('web/src/i18n/messages');

type Message = string | Readonly<Record<string, string>>;
const messagesOf = (language: string): Readonly<Record<string, Message>> =>
  JSON.parse(readFileSync(path.join(FOLDER, `${language}.json`), 'utf8'));

const en = messagesOf('en');
const textsOf = (message: Message): string[] => (typeof message === 'string' ? [message] : Object.values(message));
const placesOf = (text: string): string[] => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort();

describe('the words of the pages', () => {
  it('exist in every language of the catalog, and in no other', () => {
    expect([...PAGE_LANGUAGES].sort()).toEqual([...LANGUAGES].sort());
    const files = readdirSync(FOLDER).map((file) => file.replace('.json', ''));
    expect(files.sort()).toEqual([...LANGUAGES].sort());
  });

  describe.each(LANGUAGES)('in %s', (language) => {
    const messages = messagesOf(language);
    const entries = Object.entries(messages);

    it('have the same keys as the English ones, in the same order', () => {
      expect(Object.keys(messages)).toEqual(Object.keys(en));
    });

    it('have the same variables in each plural form', () => {
      const faults = entries.flatMap(([key, message]) => {
        const expected = placesOf(textsOf(en[key] ?? '')[0] ?? '');
        return textsOf(message)
          .filter((text) => placesOf(text).join() !== expected.join())
          .map((text) => `${key}: ${text}`);
      });
      expect(faults).toEqual([]);
    });

    it('have every plural form that the language has, if English has one', () => {
      const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories.sort();
      const faults = entries.filter(([key, message]) => {
        if (typeof en[key] === 'string' || typeof message === 'string') return typeof en[key] !== typeof message;
        return Object.keys(message).sort().join() !== categories.join();
      });
      expect(faults.map(([key]) => key)).toEqual([]);
    });

    it('are not empty, and contain no markup', () => {
      expect(
        entries.filter(([, message]) => textsOf(message).some((text) => text.trim() === '' || /[<>]/.test(text))),
      ).toEqual([]);
    });
  });
});
