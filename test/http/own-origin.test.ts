import { describe, expect, it } from 'vitest';
import { isOwnOrigin, isOwnPage } from '../../src/http/own-origin.ts';

describe("a page is the gateway's own", () => {
  it.each([
    ['http://127.0.0.1:8080', '127.0.0.1:8080'],
    ['http://localhost:8080', 'localhost:8080'],
    ['http://LOCALHOST:8080', 'localhost:8080'],
    ['http://[::1]:8080', '[::1]:8080'],
    ['http://[0:0:0:0:0:0:0:1]:8080', '[::1]:8080'],
    ['http://192.0.2.7', '192.0.2.7'],
    ['http://192.0.2.7', '192.0.2.7:80'],
    // Behind a proxy that terminates TLS.
    ['https://gateway.example', 'gateway.example'],
    ['https://gateway.example', 'gateway.example:443'],
    ['https://gateway.example:8443', 'gateway.example:8443'],
    ['https://127.0.0.1:8443', '127.0.0.1:8443'],
  ])('%s at Host %s', (origin, host) => {
    expect(isOwnOrigin(origin, host)).toBe(true);
  });
});

describe('a page is foreign', () => {
  it.each([
    ['of another site', 'https://evil.example', 'gateway.example'],
    ['of another site, at a local gateway', 'http://evil.example', '127.0.0.1:8080'],
    ['of another port of this machine', 'http://127.0.0.1:3000', '127.0.0.1:8080'],
    ['of another name of this machine', 'http://localhost:8080', '127.0.0.1:8080'],
    ['whose origin is hidden', 'null', '127.0.0.1:8080'],
    ['whose name was rebound to the gateway', 'http://evil.example:8080', 'evil.example:8080'],
    ['whose name only looks like an address', 'http://127.0.0.1.evil.example:8080', '127.0.0.1.evil.example:8080'],
    ['whose name only begins with localhost', 'http://localhost.evil.example', 'localhost.evil.example'],
    ['of a file', 'file://', '127.0.0.1:8080'],
    ['of an extension', 'chrome-extension://127.0.0.1:8080', '127.0.0.1:8080'],
    ['whose origin is not an origin', '127.0.0.1:8080', '127.0.0.1:8080'],
    ['whose origin is empty', '', '127.0.0.1:8080'],
  ])('%s: %s at Host %s', (_what, origin, host) => {
    expect(isOwnOrigin(origin, host)).toBe(false);
  });
});

describe('a request from one of our own pages', () => {
  const asks = (method: 'GET' | 'POST', headers: Record<string, string>): boolean =>
    isOwnPage({ method, header: (name) => ({ host: 'gateway.example', ...headers })[name] });
  const origin = 'https://gateway.example';

  it('has our Origin, or is a read without Origin; Sec-Fetch-Site does not contradict this', () => {
    expect(asks('POST', { origin })).toBe(true);
    expect(asks('POST', { origin, 'sec-fetch-site': 'same-origin' })).toBe(true);
    expect(asks('GET', {})).toBe(true);
    expect(asks('GET', { 'sec-fetch-site': 'same-origin' })).toBe(true);
  });

  it('is not recognised if it is a change without Origin, has a foreign Origin, or was sent from elsewhere', () => {
    expect(asks('POST', {})).toBe(false);
    expect(asks('POST', { 'sec-fetch-site': 'same-origin' })).toBe(false);
    expect(asks('GET', { origin: 'null' })).toBe(false);
    for (const site of ['same-site', 'cross-site', 'none', '']) {
      expect([site, asks('GET', { 'sec-fetch-site': site })]).toEqual([site, false]);
      expect([site, asks('POST', { origin, 'sec-fetch-site': site })]).toEqual([site, false]);
    }
  });
});
