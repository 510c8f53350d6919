import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { descriptionFault, endpointFault, nameFault } from '../../src/catalog/listing.ts';
import { parsePrice } from '../../src/catalog/price.ts';
import { parseEndpoint } from '../../src/upstream/index.ts';
import { webUrl } from '../support/any-text.ts';

const upstreamTakes = (url: string): boolean => {
  try {
    parseEndpoint(url);
    return true;
  } catch {
    return false;
  }
};

describe('an endpoint', () => {
  it.each([
    'http://service.example',
    'https://service.example:8443/v1/',
    'HTTP://127.0.0.1:3000/a%20b',
    'http://[::1]:3000/',
    'http://xn--bcher-kva.example/',
    'http://bücher.example/straße',
    'http://service.example/@user',
  ])('is accepted: %s', (url) => {
    expect(endpointFault(url)).toBeNull();
  });

  it.each([
    ['ftp://service.example/', 'http or https'],
    ['file:///etc/passwd', 'http or https'],
    ['//service.example/', 'http or https'],
    ['/path', 'http or https'],
    ['http:service.example', 'http or https'],
    ['http:///service.example', 'http or https'],
    ['http://user:secret@service.example/', 'user name'],
    ['http://@service.example/', 'user name'],
    ['http://service.example/?a=1', 'query'],
    ['http://service.example/?', 'query'],
    ['http://service.example/#x', 'fragment'],
    ['http://service.example/#', 'fragment'],
    [' http://service.example/', 'spaces'],
    ['http://service.example/a b', 'spaces'],
    ['http://service.example/\n', 'control'],
    ['http://service.example\\x', 'backslashes'],
    ['http://service.example:0/', 'port'],
    ['http://service.example:99999/', 'valid URL'],
    ['http://[::1/', 'valid URL'],
    ['http://a..b/', 'domain name'],
    ['http://(x)/', 'domain name'],
    [`http://service.example/${'a'.repeat(2_048)}`, '2048'],
  ])('is refused: %j', (url, reason) => {
    expect(endpointFault(url)).toContain(reason);
  });

  it('is accepted by the catalog exactly when the upstream client can use it', () => {
    const pieces = fc.constantFrom(
      'http://',
      'https://',
      'HTTP:',
      'ftp://',
      '//',
      '/',
      '\\',
      '@',
      ':',
      '?',
      '#',
      '.',
      '..',
      '%',
      '%41',
      '-',
      '_',
      'service.example',
      '127.0.0.1',
      '0x7f.1',
      '[::1]',
      '[',
      ']',
      'user',
      'ü',
      '(',
      ' ',
      '\t',
      '\u2003',
      '\u0000',
      '0',
      '80',
      '443',
      '65536',
      'a'.repeat(64),
      'b.'.repeat(127),
      '\u00ad',
      '\ufeff',
      '\u0085',
    );
    const url = fc.oneof(
      webUrl(),
      fc.array(pieces, { maxLength: 7 }).map((parts) => parts.join('')),
      fc.array(pieces, { maxLength: 6 }).map((parts) => `http://${parts.join('')}`),
      fc.string().map((text) => `https://service.example/${text}`),
      fc.integer({ min: 2_000, max: 2_060 }).map((length) => 'http://a/'.padEnd(length, 'x')),
    );
    fc.assert(
      fc.property(url, (text) => (endpointFault(text) === null) === upstreamTakes(text)),
      { numRuns: 3_000 },
    );
  });
});

describe('a name', () => {
  it('has 1 to 100 characters, counted as code points', () => {
    expect(nameFault('a')).toBeNull();
    expect(nameFault('😀'.repeat(100))).toBeNull();
    expect(nameFault('')).not.toBeNull();
    expect(nameFault('😀'.repeat(101))).not.toBeNull();
  });

  it('has no control characters', () => {
    for (const name of ['a\u0000b', 'a\nb', 'a\u007fb', 'a\u009bb']) expect(nameFault(name)).toContain('control');
  });
});

describe('a description', () => {
  it('may have line breaks and tabs, and no other control characters', () => {
    expect(descriptionFault('')).toBeNull();
    expect(descriptionFault('one\r\n\ttwo — 三')).toBeNull();
    for (const text of ['\u0000', '\u001b[31m', '\u007f', '\u0085'])
      expect(descriptionFault(text)).toContain('control');
  });
});

describe('a price', () => {
  it('is exact to the micro-dollar, and a finer price is refused', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000_000 }), (micros) => {
        expect(parsePrice(micros / 1_000_000)).toEqual({ micros });
      }),
    );
    for (const usd of [0.0000001, 0.0000011, 1.2345678, -0.01, Number.NaN])
      expect(parsePrice(usd)).toHaveProperty('fault');
  });

  it('is at most 10 000 USD', () => {
    expect(parsePrice(10_000)).toEqual({ micros: 10_000_000_000 });
    expect(parsePrice(10_000.000001)).toHaveProperty('fault');
  });
});
