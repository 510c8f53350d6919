import { expect, test } from 'vitest';
import { EndpointError, parseEndpoint } from '../../src/upstream/index.ts';

test.each([
  ['http://example.com', 'http:', 'example.com', 80, 'example.com', ''],
  ['http://example.com/', 'http:', 'example.com', 80, 'example.com', ''],
  ['HTTPS://Example.COM/v1/', 'https:', 'example.com', 443, 'example.com', '/v1'],
  ['https://example.com:443/a/b', 'https:', 'example.com', 443, 'example.com', '/a/b'],
  ['http://example.com:443/a%2Fb', 'http:', 'example.com', 443, 'example.com:443', '/a%2Fb'],
  ['http://example.com./x', 'http:', 'example.com', 80, 'example.com', '/x'],
  ['http://my_service.internal:8080', 'http:', 'my_service.internal', 8080, 'my_service.internal:8080', ''],
  ['http://b\u00fccher.example/', 'http:', 'xn--bcher-kva.example', 80, 'xn--bcher-kva.example', ''],
  ['http://[2001:DB8::1]:81/', 'http:', '2001:db8::1', 81, '[2001:db8::1]:81', ''],
  ['http://example.com/a/../b/./c//', 'http:', 'example.com', 80, 'example.com', '/b/c'],
])('%s', (url, protocol, hostname, port, hostHeader, basePath) => {
  const endpoint = parseEndpoint(url);
  expect(endpoint.origin).toMatchObject({ protocol, hostname, port, hostHeader });
  expect(endpoint.basePath).toBe(basePath);
});

test.each([
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://127.1/',
  'http://127.0.0.1./',
  'http://\uff11\uff12\uff17.0.0.1/',
  'http://127\u30020\u30020\u30021/',
])('an IPv4 address in any spelling becomes a dotted address: %s', (url) => {
  expect(parseEndpoint(url).origin.hostname).toBe('127.0.0.1');
});

test.each([
  ['ftp://example.com/', /absolute http/],
  ['javascript:alert(1)', /absolute http/],
  ['//example.com/', /absolute http/],
  ['example.com', /absolute http/],
  ['http:example.com', /absolute http/],
  ['http:///example.com', /absolute http/],
  ['', /absolute http/],
  ['http://', /absolute http/],
  ['http://user@example.com/', /user name/],
  ['http://user:secret@example.com/', /user name/],
  ['http://@example.com/', /user name/],
  ['http://:@example.com/', /user name/],
  ['http://example.com/?a=b', /query/],
  ['http://example.com/?', /query/],
  ['http://example.com/#a', /fragment/],
  ['http://example.com/#', /fragment/],
  ['http://example.com:0/', /port 0/],
  ['http://example.com:65536/', /not a valid URL/],
  ['http://exa mple.com/', /spaces/],
  [' http://example.com/', /spaces/],
  ['http://example.com/\n', /spaces/],
  ['http://exam\tple.com/', /spaces/],
  ['http:\\\\example.com\\', /backslashes/],
  ['http://[::1/', /not a valid URL/],
  ['http://[fe80::1%25eth0]/', /not a valid URL/],
  ['http://1.2.3.4.5/', /not a valid URL/],
  ['http://256.1.1.1/', /not a valid URL/],
  ['http://./', /host name/],
  ['http://a..b/', /host name/],
  ["http://a'b/", /host name/],
  [`http://${'a.'.repeat(130)}com/`, /host name/],
  [`http://example.com/${'a'.repeat(2048)}`, /longer/],
])('%j is refused with a reason', (url, reason) => {
  expect(() => parseEndpoint(url)).toThrow(EndpointError);
  expect(() => parseEndpoint(url)).toThrow(reason);
});

test('endpoints of one origin have the same key; endpoints with another scheme, host or port have another key', () => {
  const key = (url: string) => parseEndpoint(url).origin.key;
  expect(key('http://EXAMPLE.com:80/a')).toBe(key('http://example.com/b'));
  expect(new Set(['http://a.com', 'https://a.com', 'http://a.com:443', 'http://b.com'].map(key)).size).toBe(4);
});
