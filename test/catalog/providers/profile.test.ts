import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contactFault, displayNameFault, profileUrlFault } from '../../../src/catalog/providers/profile.ts';

const OPERATOR = 'Acme, Inc.';

describe('a display name', () => {
  it.each(['Weather & Co', 'ΑΦΟΙ', '天気屋', 'می‌خواهم', '👩‍🌾 Farm', 'Acme Weather', 'x'.repeat(60)])(
    'may be %s',
    (name) => {
      expect(displayNameFault(name, OPERATOR)).toBeNull();
    },
  );

  it.each([
    ['Acme, Inc.', 'operator'],
    ['ACME  inc', 'operator'],
    ['a c m e i n c', 'operator'],
    ['Ａｃｍｅ Ｉｎｃ', 'operator'],
    ['Acme\u200d Inc', 'operator'],
    ['Acme\u3164Inc', 'operator'],
    ['Acme\u202eInc', 'invisible'],
    ['Acme\u2067Inc', 'invisible'],
    ['Acme\u200bInc', 'invisible'],
    ['Acme\nInc', 'invisible'],
    ['Acme\u2028Inc', 'invisible'],
    ['Acme\ud800Inc', 'invisible'],
    ['\u3164', 'letter or a digit'],
    ['---', 'letter or a digit'],
    ['', '1 to 60'],
    ['x'.repeat(61), '1 to 60'],
  ])('%j is refused', (name, why) => {
    expect(displayNameFault(name, OPERATOR)).toContain(why);
  });

  it('is never the name of the operator, even with other case, spaces or punctuation', () => {
    const between = fc.constantFrom('', ' ', '  ', '-', '.', '\u00a0', '\u200d');
    const spelling = fc.tuple(
      ...Array.from('acmeinc', (letter) => fc.tuple(fc.constantFrom(letter, letter.toUpperCase()), between)),
    );
    fc.assert(
      fc.property(spelling, (parts) => {
        expect(displayNameFault(parts.flat().join('').trim(), OPERATOR)).toContain('operator');
      }),
    );
  });

  it.each(['Tollgate', 'TOLL-gate', 'Ｔｏｌｌｇａｔｅ'])(
    'is not %s, which is what gateways are called, whether or not the operator has a name',
    (name) => {
      expect(displayNameFault(name, null)).toContain('name of this gateway');
      expect(displayNameFault(name, OPERATOR)).toContain('name of this gateway');
      expect(displayNameFault(`${name} Weather`, null)).toBeNull();
    },
  );

  it('may be any other visible text if the operator has no name', () => {
    expect(displayNameFault(OPERATOR, null)).toBeNull();
    expect(displayNameFault('☂', '☂')).toContain('letter');
  });
});

it('a contact is one line of visible text; a URL leads to a web page and hides nothing', () => {
  expect(contactFault('help@weather.example, +49 30 1234')).toBeNull();
  for (const contact of ['', 'a\tb', 'a\u202eb', 'x'.repeat(201)]) expect(contactFault(contact)).not.toBeNull();
  expect(profileUrlFault('https://weather.example/about?lang=en#us')).toBeNull();
  const bad = [
    'javascript:alert(1)',
    'https://a:b@weather.example',
    'https://weather.example/\u202egpj.exe',
    `https://a/${'x'.repeat(500)}`,
  ];
  for (const url of bad) expect(profileUrlFault(url)).not.toBeNull();
});
