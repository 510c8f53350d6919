import { expect, it } from 'vitest';
import { baseUrlOf } from '../../src/http/base-url.ts';

const asked = (headers: Readonly<Record<string, string>>) => ({ header: (name: string) => headers[name] });
const url = (host: string, proto?: string, hops = 0): string =>
  baseUrlOf(asked({ host, ...(proto === undefined ? {} : { 'x-forwarded-proto': proto }) }), hops);

it('the base URL is what the caller wrote into Host, with the scheme that a trusted proxy reported', () => {
  expect(url('gateway.example')).toBe('http://gateway.example');
  expect(url('gateway.example', 'https', 0)).toBe('http://gateway.example');
  expect(url('gateway.example', 'https', 1)).toBe('https://gateway.example');
  expect(url('gateway.example', 'HTTPS', 1)).toBe('https://gateway.example');
  expect(url('gateway.example', 'javascript', 1)).toBe('http://gateway.example');
});

it('the base URL has the scheme that the outermost trusted proxy reported, not one that its caller invented', () => {
  expect(url('gateway.example', 'https, http', 1)).toBe('http://gateway.example');
  expect(url('gateway.example', 'http, https, http', 2)).toBe('https://gateway.example');
  // The outer one told, and the inner one left that as it was.
  expect(url('gateway.example', 'https', 2)).toBe('https://gateway.example');
});

it.each([
  'a',
  'a.b-c_d.example:65535',
  '10.0.0.1:80',
  '[fe80::1]',
  '[::ffff:10.0.0.1]:8080',
  'A.EXAMPLE',
  'xn--mnchen-3ya.example',
])('the base URL accepts the name or address %s', (host) => expect(url(host)).toBe(`http://${host}`));

it.each([
  '',
  "a'b",
  'a"b',
  'a;b',
  'a$b',
  'a&b',
  'a`b',
  'a(b',
  'a b',
  'a\nb',
  'a/b',
  '-a',
  'a%27',
  '[::1',
  'a:',
  'a:b',
  'a:1:2',
  '1.2.3.999',
  '[::::]',
  'xn--a',
])('the base URL refuses %j, which is unsafe in a command or is not an address', (host) =>
  expect(() => url(host)).toThrow('host: must be a plain host name'),
);
