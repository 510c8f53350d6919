import { expect, it } from 'vitest';
import { wordsOf } from '../../../src/catalog/discovery/words.ts';
import { makeListing, rated } from '../../support/listings.ts';
import { Market } from './support.ts';

it('the words of a query are folded, deduplicated and ordered, so that equal queries have equal words', () => {
  expect(wordsOf('  Beta ａlpha\tbeta ')).toEqual(['alpha', 'beta']);
  expect(wordsOf('')).toEqual([]);
  expect(wordsOf(' \u3000 ')).toEqual([]);
});

it('names rank before descriptions, whole words before parts, then better services before worse ones', async () => {
  const market = new Market();
  const [good, ...others] = [
    makeListing({ name: 'Translate, fast', description: 'good' }),
    makeListing({ name: 'Translate', description: '' }),
    makeListing({ name: 'Translated texts', description: '' }),
    makeListing({ name: 'In the description', description: 'To translate.' }),
    makeListing({ name: 'As a part', description: 'A translator' }),
    makeListing({ name: 'Not at all', description: 'Trans late' }),
  ] as const;
  market.put(...others.toReversed(), good);
  await market.beside.setQualities(
    new Map([
      [good.id, rated(51)],
      [others[4].id, rated(100)],
    ]),
  );
  const order = ['Translate, fast', 'Translate', 'Translated texts', 'In the description'];
  expect(await market.names({ q: 'translate' })).toEqual(order);
  expect(await market.names({ q: 'TRANSLAT' })).toEqual(expect.arrayContaining([...order, 'As a part']));
  expect((await market.names({ q: 'late', sort: 'quality' }))[0]).toBe('Not at all');
});

it.each([
  ['trans', 'Translate'],
  ['slat', 'Translate'],
  ['天気', '天気予報サービス'],
  ['予報サ', '天気予報サービス'],
  ['報', '天気予報サービス'],
  ['ｻｰﾋﾞｽ', '天気予報サービス'],
  ['번역', '한국어번역기'],
  ['翻译api', '翻译API服务'],
  ['перев', 'Быстрый ПЕРЕВОД'],
  ['ﬁle', 'FILE store'],
  ['node.js', 'Node.js runner'],
  ['c++', 'C++ compiler'],
  ['😀', 'smile 😀'],
  ['STRASSE', 'Straßenkarte'],
  ['Straße', 'STRASSENKARTE'],
  ['istanbul', 'İSTANBUL'],
  ['ISPARTA', 'ısparta'],
  ['ΟΔΟΣ', 'οδοσημα'],
  ['οδός', 'ΟΔΌΣ'],
])('%s finds %s', async (q, name) => {
  const market = new Market();
  market.put(makeListing({ name, description: '' }), makeListing({ name: 'Other', description: name }));
  market.put(makeListing({ name: 'Neither', description: '無関係' }));
  expect(await market.names({ q })).toEqual([name, 'Other']);
});

it.each([
  ['हिन्द', 'हिन्द', 'हिन्दी'],
  ['野家', '野家', '𠮷野家'],
  ['smile', 'smile😀', 'smiles'],
])('%s is a word of %s and a part of %s', async (q, word, part) => {
  const market = new Market();
  const [better, worse] = [makeListing({ name: part }), makeListing({ name: word })];
  market.put(better, worse);
  await market.beside.setQualities(new Map([[better.id, rated(100)]]));
  expect(await market.names({ q })).toEqual([word, part]);
});

it('a word is not found across the border between name and description', async () => {
  const market = new Market();
  market.put(makeListing({ name: 'ab', description: 'cd' }));
  expect(await market.names({ q: 'bc' })).toEqual([]);
});
