// Every way to write a path that some server reads as another path. What the gateway passes on, it passes on byte for byte.

import type { CallerCase } from './case.ts';

const request = (suffix: string): string => `GET {path}${suffix} HTTP/1.1\r\nHost: gateway.test\r\n{auth}\r\n`;

const PASSES: readonly string[] = [
  '/',
  '//',
  '//etc//passwd',
  '/a%2fb',
  '/a%2Fb',
  '/a%5cb',
  '/a\\b',
  '/%',
  '/%2',
  '/%zz',
  '/%u002e%u002e/x',
  '/%252e%252e%252fx',
  '/%c0%ae%c0%ae/x',
  '/%e0%80%ae%e0%80%ae/x',
  '/%00',
  '/%0d%0aX-Injected:%20y',
  '/%0a',
  '/%7f',
  '/%20',
  '/a;b=c',
  '/;/x',
  '/...',
  '/.../x',
  '/..a',
  '/a..',
  '/.well-known/x',
  '/~root',
  '/$(id)',
  '/`id`',
  '/\'"<>',
  '/{a}|^',
  '/a?b?c',
  '/a?../..',
  '/a?x=%2e%2e%2f',
  '/a?',
  '?',
  '?x=http://169.254.169.254/',
  '/http://other.test/',
  '/@other.test',
  '/:80',
  '/a&b=c',
  '/a+b',
];

/** Some server reads a dot segment in each of these. */
const REFUSED: readonly string[] = [
  '/..',
  '/.',
  '/../x',
  '/./x',
  '/a/../../x',
  '/a/..',
  '/%2e%2e/x',
  '/%2E%2E/x',
  '/.%2e/x',
  '/%2e./x',
  '/%2e/x',
  '/a%2f..%2fx',
  '/a%2F%2e%2e%2Fx',
  '/a%5c..%5cx',
  '/a\\..\\x',
  '/..\\x',
  '/..;/x',
  '/..;a=b/x',
  '/..%3b/x',
  '/..%00/x',
  '/..%00',
  '/..%0a/x',
  '/..%0d%0a/x',
  '/..%09/x',
  '/..%20/x',
  '/%2e%2e%2f%2e%2e%2fetc/passwd',
];

export const TARGETS: readonly CallerCase[] = [
  ...PASSES.map(
    (suffix): CallerCase => ({
      name: `target ${suffix}`,
      wire: request(suffix),
      allowed: { served: { method: 'GET', suffix, body: '' } },
    }),
  ),
  ...REFUSED.map(
    (suffix): CallerCase => ({
      name: `target ${suffix}`,
      wire: request(suffix),
      allowed: { answered: [400], refused: [400] },
    }),
  ),
];
