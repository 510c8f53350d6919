import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import { locationForCaller } from '../../src/proxy/redirects.ts';
import { hasDotSegment, parseTarget, upstreamPath } from '../../src/proxy/target.ts';
import { parseEndpoint } from '../../src/upstream/index.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const PROXY = `${PROXY_PREFIX}${ID}`;
const GATEWAY = 'https://gate.example:8443';

/** @param called  what follows the service id in the call */
const place = (value: string, called = '/a/b', endpoint = 'http://inside.example:8080/v1'): string | null => {
  const [rest = '', query] = called.split('?');
  const target = parseTarget(`${PROXY}${rest}`);
  return locationForCaller(value, {
    ...parseEndpoint(endpoint),
    target,
    query,
    headers: ['accept', 'host', 'host', 'gate.example:8443'],
  });
};

describe('a redirect to within the endpoint leads through the proxy', () => {
  it.each([
    ['http://inside.example:8080/v1/x?q=1#part', `${PROXY}/x?q=1#part`],
    ['HTTP://INSIDE.example.:8080/v1/x', `${PROXY}/x`],
    ['//inside.example:8080/v1/x', `${PROXY}/x`],
    ['/v1/x', `${PROXY}/x`],
    ['/v1', PROXY],
    ['/v1/', `${PROXY}/`],
    ['/v1?q', `${PROXY}?q`],
    ['/v1/x?', `${PROXY}/x?`],
    ['x', `${PROXY}/a/x`],
    ['../x', `${PROXY}/x`],
    ['./', `${PROXY}/a/`],
    ['?page=2', `${PROXY}/a/b?page=2`],
    ['#part', `${PROXY}/a/b#part`],
    ['', `${PROXY}/a/b`],
    ['/v1//x', `${PROXY}//x`],
    ['/v1/../v1/x', `${PROXY}/x`],
    ['\\v1\\x', `${PROXY}/x`],
    ['\t/v1/x', `${PROXY}/x`],
    ['/v1/a%2Fb', `${PROXY}/a%2Fb`],
    ['/v1/\xc3\xa9?\xc3\xa9', `${PROXY}/%C3%A9?%C3%A9`],
  ])('%s', (value, expected) => {
    expect(place(value)).toBe(expected);
  });

  it('with the default port, explicit or not', () => {
    expect(place('https://inside.example:443/x', '/', 'https://inside.example')).toBe(`${PROXY}/x`);
    expect(place('https://inside.example/x', '/', 'https://inside.example:443')).toBe(`${PROXY}/x`);
    expect(place('http://[::ffff:1]/x', '/', 'http://[0::ffff:1]:80/')).toBe(`${PROXY}/x`);
  });

  it('for a call without a path, and for one with a query', () => {
    expect(place('?q', '')).toBe(`${PROXY}?q`);
    expect(place('x', '/?a=/b/c')).toBe(`${PROXY}/x`);
    expect(place('/x', '', 'http://inside.example')).toBe(`${PROXY}/x`);
  });
});

describe('the caller does not learn', () => {
  it.each([
    ['another path of the origin', '/v1x'],
    ['a path above the endpoint', '../../x'],
    ['a path that only an unresolved dot segment keeps within the endpoint', '/v1/../x'],
    ['the same with an encoded dot segment', '/v1/%2e%2E/x'],
    ['the same with backslashes', '/v1/..\\x'],
    ['a path that leaves the endpoint when an encoded slash is decoded', '/v1/..%2fx'],
    ['a path that leaves the endpoint when a parameter is cut off', '/v1/..;/x'],
    ['a path that is the endpoint only when it is decoded', '/%761/x'],
    ['a path in another case', '/V1/x'],
    ['the origin with a user name', 'http://user@inside.example:8080/v1/x'],
    ['the origin with a password', 'http://:secret@inside.example:8080/v1/x'],
    ['the origin without its path', '//inside.example:8080'],
    ['the origin behind backslashes', '\\\\inside.example:8080\\x'],
    ['something that is not a URL', 'http://inside.example:port/'],
    ['a URL without a host', 'http://'],
  ])('%s', (_what, value) => {
    expect(place(value)).toBeNull();
  });

  it('a sibling of the endpoint, from a call without a path', () => {
    expect(place('x', '')).toBeNull();
  });
});

describe('a redirect to another address passes unchanged', () => {
  it.each([
    'https://inside.example:8080/v1/x',
    'http://inside.example/v1/x',
    'http://inside.example:8081/v1/x',
    'http://other.example/v1/x?q#f',
    '//other.example/v1/x',
    'http://inside.example.other.example:8080/v1',
    'http://other.example/\xc3\xa9',
    'mailto:someone@inside.example',
    'myapp://inside.example:8080/v1/x',
  ])('%s', (value) => {
    expect(place(value)).toBe(value);
  });
});

describe('a redirect to this gateway', () => {
  it.each([`${GATEWAY}${PROXY}`, `${GATEWAY}${PROXY}/x`])(
    'is passed on if it leads to the same service: %s',
    (value) => {
      expect(place(value)).toBe(value);
    },
  );

  it.each([
    `${GATEWAY}/api/v1/keys`,
    `${GATEWAY}${PROXY}x`,
    `${GATEWAY}${PROXY}/../${ID.replace('0', '1')}/`,
    'http://GATE.example:8443/api/v1/keys',
    '//gate.example:8443/api/v1/keys',
  ])('is not passed on if it leads elsewhere, because the key of the caller would go with it: %s', (value) => {
    expect(place(value)).toBeNull();
  });
});

function urlOf(text: string, base: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

it('any redirect leads the caller to exactly the intended URL, or a rule forbids that redirect', () => {
  const segment = fc.constantFrom(
    'v1',
    'v1x',
    'a',
    '..',
    '.',
    '%2e%2e',
    '..%2f',
    '%76',
    '',
    'é',
    'a b',
    'x;y',
    '{',
    '\\',
  );
  const path = fc.array(segment, { maxLength: 5 }).map((segments) => segments.join('/'));
  const start = fc.constantFrom(
    '',
    '/',
    '/v1/',
    '/v1/w/',
    'http://inside.example:8080/v1/',
    'http://inside.example:8080/',
    'HTTP://inside.EXAMPLE:08080/v1/',
    '//inside.example:8080/v1/',
    'http:/v1/',
    'http:',
    'http:\\\\inside.example:8080\\v1/',
    'http://u:p@inside.example:8080/v1/',
    'https://inside.example:8080/v1/',
    'http://other.example/v1/',
  );
  const rest = fc.constantFrom('', '?', '?q=1&r=/v1/../', '#f', '?q#f', '?q=%é"\'<>');
  const value = fc.tuple(start, path, rest).map((parts) => Buffer.from(parts.join('')).toString('latin1'));
  const endpoint = fc.constantFrom(
    'http://inside.example:8080/v1',
    'http://inside.example:8080',
    'http://inside.example:8080/v1/w/',
  );
  const called = fc.constantFrom('', '/', '/a', '/a/b', '/v1/', '/a?x=/y', '//a');
  fc.assert(
    fc.property(value, endpoint, called, (said, at, asked) => {
      const { basePath } = parseEndpoint(at);
      const [askedPath = '', query] = asked.split('?');
      // What a client would make of it that called the service itself.
      const text = Buffer.from(said, 'latin1').toString();
      const meant = urlOf(text, `http://inside.example:8080${upstreamPath(basePath, askedPath, query)}`);
      const given = place(said, asked, at);
      if (meant === null) {
        expect(given).toBeNull();
        return;
      }
      if (meant.origin !== 'http://inside.example:8080') {
        expect(given).toBe(said);
        return;
      }
      const isWithin = `${meant.pathname}/`.startsWith(`${basePath}/`) && meant.username === '';
      expect(given !== null).toBe(isWithin && !hasDotSegment(meant.pathname.slice(basePath.length)));
      if (given === null) return;
      const next = new URL(given, `${GATEWAY}${PROXY}${asked}`);
      const target = parseTarget(next.pathname);
      expect([next.origin, target.serviceId]).toEqual([GATEWAY, ID]);
      expect(
        upstreamPath(basePath, target.rest, undefined) + next.href.slice(next.origin.length + next.pathname.length),
      ).toBe(meant.href.slice(meant.origin.length));
    }),
    { numRuns: 2000 },
  );
});
