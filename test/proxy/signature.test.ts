import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Signer } from '../../src/proxy/signature.ts';

const COVERED = '("@method" "@authority" "@path" "@query" "x-acf-usage-id" "x-acf-buyer")';
const ALWAYS = Number.POSITIVE_INFINITY;
const request = { method: 'POST', path: '/v1/translate?to=fr', usageId: 'usage-1', buyer: 'buyer-1' };
const NOW_MS = 1_763_800_000_999;

const hmac = (secret: string, base: string): string => createHmac('sha256', secret).update(base).digest('base64');

describe('the signature of a call', () => {
  it('follows RFC 9421 over method, authority, path, query, usage id and buyer', () => {
    const params = `${COVERED};created=1763800000;keyid="k1";alg="hmac-sha256"`;
    const base = [
      '"@method": POST',
      '"@authority": service.example:8443',
      '"@path": /v1/translate',
      '"@query": ?to=fr',
      '"x-acf-usage-id": usage-1',
      '"x-acf-buyer": buyer-1',
      `"@signature-params": ${params}`,
    ].join('\n');
    const signer = new Signer('service.example:8443', [{ keyid: 'k1', secret: 'one', untilMs: ALWAYS }]);
    expect(signer.lines(request, NOW_MS)).toBe(
      `signature-input: sig1=${params}\r\nsignature: sig1=:${hmac('one', base)}:\r\n`,
    );
  });

  it.each([
    ['/a', '/a', '?'],
    ['/a?', '/a', '?'],
    ['/a?b?c=%3F', '/a', '?b?c=%3F'],
    ['/', '/', '?'],
    ['/a%2Fb//c;d', '/a%2Fb//c;d', '?'],
  ])('covers path and query of %s byte for byte', (path, onlyPath, query) => {
    const signer = new Signer('h', [{ keyid: 'k', secret: 's', untilMs: ALWAYS }]);
    const [input = '', signature = ''] = signer.lines({ ...request, path }, NOW_MS).split('\r\n');
    const base = `"@method": POST\n"@authority": h\n"@path": ${onlyPath}\n"@query": ${query}\n"x-acf-usage-id": usage-1\n"x-acf-buyer": buyer-1\n"@signature-params": ${input.slice('signature-input: sig1='.length)}`;
    expect(signature).toBe(`signature: sig1=:${hmac('s', base)}:`);
  });

  it('differs for any two requests that differ', () => {
    const signer = new Signer('h', [{ keyid: 'k', secret: 's', untilMs: ALWAYS }]);
    const visible = fc.stringMatching(/^[\x21-\x7e]{0,8}$/);
    const any = fc.record({
      method: fc.constantFrom('GET', 'POST'),
      path: visible.map((rest) => `/${rest}`),
      usageId: visible,
      buyer: visible,
    });
    const said = ({ path, ...rest }: typeof request): string =>
      // `/a` and `/a?` have the same query, the empty one (RFC 9421 §2.2.7).
      JSON.stringify({ ...rest, path: path.replace(/^([^?]*)\?$/, '$1') });
    fc.assert(
      fc.property(any, any, (a, b) => {
        expect(signer.lines(a, NOW_MS) === signer.lines(b, NOW_MS)).toBe(said(a) === said(b));
      }),
      { numRuns: 500 },
    );
  });

  it('is also made with the old secret as long as that secret is valid, and then only with the new one', () => {
    const signer = new Signer('h', [
      { keyid: 'new', secret: 'n', untilMs: ALWAYS },
      { keyid: 'old', secret: 'o', untilMs: NOW_MS + 1 },
    ]);
    const both = signer.lines(request, NOW_MS);
    expect([...both.matchAll(/(sig\d)=\(.*?keyid="(\w+)"/g)].map(([, label, keyid]) => [label, keyid])).toEqual([
      ['sig1', 'new'],
      ['sig2', 'old'],
    ]);
    expect(both.match(/sig\d=:/g)).toEqual(['sig1=:', 'sig2=:']);
    expect(signer.lines(request, NOW_MS + 1).match(/sig\d=/g)).toEqual(['sig1=', 'sig1=']);
  });
});
