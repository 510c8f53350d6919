import { describe, expect, it } from 'vitest';
import { prefers, takes } from '../../src/http/accept-headers.ts';

describe('a media type is preferred', () => {
  const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  it.each([
    [BROWSER, true],
    ['TEXT/HTML', true],
    ['application/json;q=0.5, text/html;q=0.8', true],
    ['application/json, text/html;q=0.8', false],
    ['application/json, text/html', false],
    ['text/html;q=0', false],
    ['*/*', false],
    ['text/*', false],
    ['', false],
    [undefined, false],
  ])('by %s: %s', (accept, expected) => {
    expect(prefers(accept, 'text/html', 'application/json')).toBe(expected);
  });
});

describe('gzip is accepted', () => {
  it.each([
    ['gzip, deflate, br', true],
    ['br;q=1.0, GZIP;q=0.5', true],
    ['gzip;q=0', false],
    ['gzip;q=0.000, *', false],
    ['identity', false],
    ['*', false],
    [undefined, false],
  ])('by %s: %s', (acceptEncoding, expected) => {
    expect(takes(acceptEncoding, 'gzip')).toBe(expected);
  });
});

it('only the beginning of a header is read: a file or a refusal takes no token, so reading must be cheap', () => {
  expect(takes(`${','.repeat(400)}br`, 'br')).toBe(true);
  expect(takes(`${','.repeat(15_000)}br`, 'br')).toBe(false);
  expect(prefers(`${','.repeat(15_000)}text/html`, 'text/html', 'application/json')).toBe(false);
});
