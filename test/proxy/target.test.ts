import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/errors.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import { parseTarget, upstreamPath } from '../../src/proxy/target.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const codeOf = (path: string): string => {
  try {
    parseTarget(path);
    return 'ok';
  } catch (error) {
    return error instanceof ApiError ? error.code : 'threw something else';
  }
};

describe('the target of a call', () => {
  it.each([
    ['', ''],
    ['/', '/'],
    ['/v1/chat/completions', '/v1/chat/completions'],
    ['/a//b', '/a//b'],
    ['/a%2Fb%20c', '/a%2Fb%20c'],
    ['/..a/.b./...', '/..a/.b./...'],
    ['/file.txt', '/file.txt'],
    ['/a..%20/x', '/a..%20/x'],
    ['/..%2a/x', '/..%2a/x'],
    ['/%252e%252e/x', '/%252e%252e/x'],
  ])('passes %j byte for byte', (rest, expected) => {
    expect(parseTarget(`${PROXY_PREFIX}${ID}${rest}`)).toEqual({ serviceId: ID, rest: expected });
  });

  it.each([
    '/..',
    '/.',
    '/../x',
    '/a/../b',
    '/a/./b',
    '/a/%2e%2e/b',
    '/a/.%2E/b',
    '/%2e',
    '/a%2f..%2fb',
    '/a\\..\\b',
    '/a%5c..',
    '/a/..;x=1/b',
    '/a/..%3bx/b',
    '/..%00/x',
    '/..%00.png',
    '/..%09/x',
    '/..%0d%0A/x',
    '/..%1F/x',
    '/..%20/x',
    '/.%2e%7F/x',
  ])('refuses the dot segment in %j', (rest) => {
    expect(codeOf(`${PROXY_PREFIX}${ID}${rest}`)).toBe('invalid_request');
  });

  it.each(['', 'x', `${ID}x`, ID.slice(1)])('finds no service in %j', (tail) => {
    expect(codeOf(PROXY_PREFIX + tail)).toBe('service_not_found');
  });

  it('never lets a URL parser leave the endpoint path', () => {
    const part = fc.constantFrom('..', '.', '%2e', '%2E', '/', '\\', '%2f', '%5C', 'a', ';', '%3b', '%25');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const rest = `/${parts.join('')}`;
        if (codeOf(`${PROXY_PREFIX}${ID}${rest}`) !== 'ok') return;
        const path = upstreamPath('/base/path', rest, undefined);
        expect(new URL(path, 'http://service').pathname.startsWith('/base/path/')).toBe(true);
        const decoded = path.replace(/%2f/gi, '/').replace(/%5c/gi, '/');
        expect(new URL(decoded, 'http://service').pathname.startsWith('/base/path/')).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the path on the wire', () => {
  it.each([
    ['', '', undefined, '/'],
    ['', '/', undefined, '/'],
    ['/v1', '', undefined, '/v1'],
    ['/v1', '/', undefined, '/v1/'],
    ['/v1', '/chat', 'a=b&a=%20', '/v1/chat?a=b&a=%20'],
    ['', '/x', '', '/x?'],
  ])('is made from %j and %j: %j', (base, rest, query, expected) => {
    expect(upstreamPath(base, rest, query)).toBe(expected);
  });
});
