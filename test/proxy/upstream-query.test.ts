import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UpstreamQuery } from '../../src/proxy/upstream-query.ts';

const SECRET = 'sk-own/key+1';
const ENCODED = 'sk-own%2Fkey%2B1';
const query = new UpstreamQuery([['api_key', SECRET]]);

describe('a parameter that a listing adds', () => {
  it.each([
    [undefined, ''],
    ['', ''],
    ['a=1', 'a=1&'],
    ['a=1&b', 'a=1&b&'],
    ['api_key=mine', ''],
    ['api_key', ''],
    ['a=1&api_key=mine&b=2', 'a=1&b=2&'],
    ['api_key=1&a=%zz&&api_key=2', 'a=%zz&&'],
    ['%61pi_key=mine&a', 'a&'],
    ['api%5fkey=mine&a', 'a&'],
    ['%u0061pi_key=mine&a', 'a&'],
    ['API_Key=mine&a', 'a&'],
    ['api_key[]=mine&api_key%5B0%5D=mine&a', 'a&'],
    ['api.key=mine&api+key=mine&api%20key=mine&a', 'a&'],
    ['+api_key=mine&%20api_key=mine&?api_key=mine&a', 'a&'],
    ['api_key%00x=mine&a', 'a&'],
    ['a=1;api_key=mine;b=2', 'a=1;b=2&'],
    ['a=api_key&api_key2=1&my_api_key=2&%2561pi_key=3', 'a=api_key&api_key2=1&my_api_key=2&%2561pi_key=3&'],
  ])("replaces the caller's parameter of the same name, and leaves the rest unchanged: %j", (sent, kept) => {
    expect(query.sent(sent)).toBe(`${kept}api_key=${ENCODED}`);
  });

  it('is the only one with its name for any parser of the query, whatever the caller sent', () => {
    const name = fc.constantFrom(
      'api_key',
      'API_KEY',
      '%61pi_key',
      'api%5Fkey',
      'a',
      'b%20',
      '',
      'api_key%',
      '%61%70i_key',
    );
    const value = fc.constantFrom('', '=', '=x', '=%26api_key=x', '=a=b', '=%');
    const part = fc.tuple(name, value).map((both) => both.join(''));
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const sent = new URLSearchParams(query.sent(parts.join('&')));
        expect(sent.getAll('api_key')).toEqual([SECRET]);
        const others = (all: URLSearchParams) =>
          [...all].filter(([key]) => key !== 'api_key' && key.toLowerCase() !== 'api_key');
        expect(others(sent)).toEqual(others(new URLSearchParams(parts.join('&'))));
      }),
    );
  });
});

describe('a caller gets', () => {
  it.each([
    ['/p/a', '/p/a'],
    ['/p/a?', '/p/a?'],
    ['/p/a#f?x', '/p/a#f?x'],
    [`/p/a?api_key=${ENCODED}`, '/p/a'],
    [`/p/a?b=1&api_key=${ENCODED}#f`, '/p/a?b=1#f'],
    [`https://other.example/?API_KEY=${ENCODED}&b`, 'https://other.example/?b'],
    ['https://other.example/?q=api_key', 'https://other.example/?q=api_key'],
    [`/p/a?token=${ENCODED}`, null],
    [`/p/${ENCODED}`, null],
    [`/p/a#${SECRET}`, null],
    [`/p/a?next=${encodeURIComponent(`/b?api_key=${ENCODED}`)}`, null],
    [`/p/a?next=${encodeURIComponent(encodeURIComponent(`/b?api_key=${ENCODED}`))}`, null],
  ])('a location without the secret parameter, or no location: %s', (location, shown) => {
    expect(query.hiddenIn(location)).toBe(shown);
  });

  it('no header that shows the secret, while a location is checked separately', () => {
    const headers = [
      'Link',
      `</a?api_key=${ENCODED}>; rel=next`,
      'Location',
      `/?api_key=${ENCODED}`,
      'X-A',
      'b',
      'X-B',
      SECRET,
    ];
    expect(query.passing(headers)).toEqual(['Location', `/?api_key=${ENCODED}`, 'X-A', 'b']);
  });

  it('no secret with spaces in either encoding, while a value too short to be a secret is not searched for', () => {
    const spaced = new UpstreamQuery([
      ['k', 'two words'],
      ['v', '2'],
    ]);
    expect(spaced.sent(undefined)).toBe('k=two%20words&v=2');
    expect([spaced.hiddenIn('/a?x=two+words'), spaced.hiddenIn('/a?x=two%20words')]).toEqual([null, null]);
    expect(spaced.hiddenIn('/a?x=2&v=2')).toBe('/a?x=2');
  });
});
