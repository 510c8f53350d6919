import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseLanguage, LANGUAGES, languageOf, negotiateLanguage } from '../../src/catalog/languages.ts';
import { ApiError } from '../../src/errors.ts';

describe('a language tag', () => {
  it.each([
    ['en', 'en'],
    ['EN-gb', 'en'],
    ['zh', 'zh-CN'],
    ['zh-CN', 'zh-CN'],
    ['zh-Hans', 'zh-CN'],
    ['zh-SG', 'zh-CN'],
    ['zh-Hans-HK', 'zh-CN'],
    ['zh-TW', 'zh-TW'],
    ['ZH-tw', 'zh-TW'],
    ['zh-Hant', 'zh-TW'],
    ['zh-HK', 'zh-TW'],
    ['zh-Hant-HK', 'zh-TW'],
    ['ja-JP', 'ja'],
    ['ko', 'ko'],
    ['es-MX', 'es'],
    ['de-AT', 'de'],
    ['fr-CA', 'fr'],
  ])('%s means %s', (tag, language) => {
    expect(languageOf(tag)).toBe(language);
  });

  it.each(['pt', 'english', 'zhh', '', '*', 'en_US', '-en', 'en-', 'toolongprimary', 'constructor'])(
    'that is not one of ours is refused: %j',
    (tag) => {
      expect(languageOf(tag)).toBeNull();
    },
  );
});

describe('Accept-Language', () => {
  it.each([
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de, fr', 'de'],
    ['de;q=0.5, fr', 'fr'],
    ['pt-BR, pt;q=0.9, ko;q=0.8', 'ko'],
    ['pt', 'en'],
    ['zh-TW,zh;q=0.9,en;q=0.8', 'zh-TW'],
    ['zh-HK', 'zh-TW'],
    ['fr ; q=0.3 ,\tja ; q=0.7', 'ja'],
    ['es-MX;q=0.2, es;q=0.9, de;q=0.5', 'es'],
    ['*', 'en'],
    ['de;q=0.4, *;q=0.8', 'en'],
    ['de, *', 'de'],
    ['*, de', 'de'],
    ['en;q=0, *', 'zh-TW'],
    ['de;q=0', 'en'],
    ['ja;q=1.001, ko;q=0.1', 'ko'],
    ['fr;q=2, ;;;, "x", de;q=0.1;x=y, es;q=0.05', 'es'],
  ])('%j prefers %s', (header, language) => {
    expect(negotiateLanguage(header)).toBe(language);
  });

  it('never causes a failure, whatever is sent', () => {
    const pieces = fc.constantFrom(
      'de',
      'zh-Hant',
      '*',
      ';q=',
      '0.5',
      '1',
      ',',
      ' ',
      ';',
      '-',
      'q',
      '=',
      '\t',
      'é',
      '"',
    );
    const header = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join('')),
    );
    fc.assert(fc.property(header, (text) => (LANGUAGES as readonly string[]).includes(negotiateLanguage(text))));
  });

  it('selects the language that is named alone or with the highest weight', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...LANGUAGES], { minLength: 1 }), fc.nat(7), (asked, at) => {
        const wanted = asked[at % asked.length] as string;
        const header = asked.map((language) => (language === wanted ? language : `${language};q=0.9`)).join(', ');
        expect(negotiateLanguage(header)).toBe(wanted);
      }),
    );
  });

  it('costs no more to read when it is very long', () => {
    expect(negotiateLanguage(`${'x,'.repeat(5_000)}de`)).toBe('en');
  });
});

describe('the lang parameter', () => {
  it('takes precedence over Accept-Language', () => {
    expect(chooseLanguage('ko', 'de')).toBe('ko');
    expect(chooseLanguage(undefined, 'de')).toBe('de');
  });

  it('causes an error that names the parameter if we do not have the language', () => {
    expect(() => chooseLanguage('pt', 'de')).toThrow(ApiError);
    expect(() => chooseLanguage('pt', 'de')).toThrow(/^lang: /);
  });
});
