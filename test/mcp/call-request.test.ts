import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../src/errors.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import { targetFault } from '../../src/http/request-head.ts';
import { type CallArguments, callRequest } from '../../src/mcp/call-request.ts';
import { anyText, webPath } from '../support/any-text.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

const request = (args: Partial<CallArguments>) =>
  callRequest(
    { service_id: ID, method: 'GET', path: '/', ...args },
    { authorization: 'Bearer key', headers: ['host', 'gateway.test', 'cookie', 'a=b'] },
  );

function headerOf({ head }: ReturnType<typeof request>, name: string): string | undefined {
  const at = head.headers.indexOf(name);
  return at < 0 ? undefined : head.headers[at + 1];
}

describe('the request of a call_service', () => {
  test('has a target that the HTTP edge accepts, or is refused as invalid_request, whatever the arguments are', () => {
    const text = fc.oneof(anyText(), fc.string(), fc.constantFrom('\ud800', '%', '#', '?', '\r\n', ' '));
    const value = fc.oneof(text, fc.double(), fc.boolean());
    const query = fc.dictionary(text, fc.oneof(value, fc.array(value, { maxLength: 3 })), { maxKeys: 3 });
    const path = fc.oneof(
      text,
      text.map((rest) => `/${rest}`),
      webPath(),
    );
    fc.assert(
      fc.property(path, query, (path, query) => {
        try {
          const { head } = request({ path, query });
          expect(targetFault(head.path, head.query)).toBeNull();
          expect(head.path).toBe(`${PROXY_PREFIX}${ID}${path}`);
          expect(head.path).not.toMatch(/[?#]/);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          expect(error.code).toBe('invalid_request');
        }
      }),
    );
  });

  test('is refused for a path that begins with a proxy path, which would be appended to the address of the service', () => {
    for (const path of [`${PROXY_PREFIX}${ID}`, `${PROXY_PREFIX}${ID}/translate`]) {
      expect(() => request({ path })).toThrow('path: must be only what follows the proxy_path');
    }
  });

  test('has a query that parses to the given parameters, in their order', () => {
    const text = fc.string({ unit: 'grapheme' });
    const value = fc.oneof(text, fc.integer(), fc.boolean());
    fc.assert(
      fc.property(fc.dictionary(text, fc.oneof(value, fc.array(value, { minLength: 1 })), { maxKeys: 5 }), (query) => {
        const read = [...new URLSearchParams(request({ query }).head.query ?? '')];
        const given = Object.entries(query).flatMap(([name, values]) =>
          (Array.isArray(values) ? values : [values]).map((one) => [name, String(one)]),
        );
        expect(read).toEqual(given);
      }),
    );
  });

  test.each([
    [undefined, '', undefined],
    [null, '', undefined],
    ['', '', undefined],
    [{ a: 'ü' }, '{"a":"ü"}', 'application/json'],
    [0, '0', 'application/json'],
    [false, 'false', 'application/json'],
    [' {"a": 1}', ' {"a": 1}', 'application/json'],
    ['{not JSON', '{not JSON', 'text/plain; charset=utf-8'],
    ['5', '5', 'text/plain; charset=utf-8'],
  ])('sends the body %j as %j, with media type %j', (body, sent, mediaType) => {
    const made = request({ method: 'POST', body });
    expect(Buffer.from(made.body).toString()).toBe(sent);
    expect(headerOf(made, 'content-type')).toBe(mediaType);
    expect(made.head.bodyLength).toBe(Buffer.byteLength(sent));
  });

  test.each([
    ['a,b', 'text/csv', 'a,b'],
    ['{"a":1}', 'text/plain', '{"a":1}'],
    ['a=1&b=2', 'application/x-www-form-urlencoded', 'a=1&b=2'],
    [{ a: 1 }, 'application/vnd.api+json; charset=UTF-8', '{"a":1}'],
    [undefined, 'text/csv', ''],
  ])('sends the body %j with the content type that %s states', (body, content_type, sent) => {
    const made = request({ method: 'POST', body, content_type });
    expect(Buffer.from(made.body).toString()).toBe(sent);
    expect(made.head.headers.filter((name) => name === 'content-type')).toHaveLength(1);
    expect(headerOf(made, 'content-type')).toBe(content_type);
  });

  test.each([
    [{ body: 'x', content_type: 'multipart/form-data; boundary=x' }, /multipart.*over HTTP/],
    [{ body: { a: 1 }, content_type: 'text/csv' }, /^body: must be text/],
    [{ body: 'x', content_type: 'text/plain; charset=latin1' }, /UTF-8/],
    [{ body: 'x', content_type: 'csv' }, /^content_type: must be a media type/],
    [{ headers: { 'Content-Type': 'text/csv' } }, /^headers\.content-type: give it as `content_type`/],
    [{ headers: { 'X-ACF-Max-Amount': '1' } }, /`max_amount`/],
    [{ headers: { 'X-ACF-Free-Only': 'true' } }, /`free_only`/],
    [{ headers: { 'Idempotency-Key': '1' } }, /`idempotency_key`/],
    [{ headers: { 'Accept-Encoding': 'gzip' } }, /^headers\.accept-encoding/],
    [{ headers: { a: '1', A: '2' } }, /^headers\.a: given more than once/],
    [{ headers: { 'a b': '1' } }, /not the name of a header/],
    [{ headers: { 'a\r\nx': '1' } }, /not the name of a header/],
    [{ headers: { a: '1\r\nx-acf-max-amount: 9' } }, /^headers\.a: must be visible/],
    [{ headers: { a: ' 1' } }, /^headers\.a: must be visible/],
    [{ headers: { a: 'ü' } }, /^headers\.a: must be visible/],
    [{ headers: { a: 'x'.repeat(15_360) } }, /^path, query, headers: together/],
  ])('is refused for %j, with a reason', (args, message) => {
    const error = expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(message) });
    expect(() => request(args)).toThrow(error);
  });

  test('lets headers of the caller replace the usual ones, and refuses an upgrade as HTTP does', () => {
    const made = request({ headers: { 'User-Agent': 'mine', Accept: 'text/csv', 'X-Version': '2', empty: '' } });
    const read = ['user-agent', 'accept', 'x-version', 'empty', 'host'].map((name) => headerOf(made, name));
    expect(read).toEqual(['mine', 'text/csv', '2', '', 'gateway.test']);
    expect(made.head.headers.filter((name) => name === 'accept')).toHaveLength(1);
    const upgrade = expect.objectContaining({ code: 'upgrade_not_supported' });
    expect(() => request({ headers: { Upgrade: 'websocket' } })).toThrow(upgrade);
  });

  test('has headers that the HTTP edge accepts, or is refused as invalid_request, whatever the headers are', () => {
    const text = fc.oneof(fc.string(), anyText(), fc.constantFrom('Host', '\u212a', '__proto__', 'a\n'));
    fc.assert(
      fc.property(fc.dictionary(text, text, { maxKeys: 3 }), (headers) => {
        try {
          const { head } = request({ headers });
          for (const [i, part] of head.headers.entries()) {
            expect(part).toMatch(i % 2 === 0 ? /^[!#$%&'*+\-.^_`|~0-9a-z]+$/ : /^[\t\x20-\x7e]*$/);
          }
          expect(head.headers.slice(0, 2)).toEqual(['host', 'gateway.test']);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          expect(['invalid_request', 'upgrade_not_supported']).toContain(error.code);
        }
      }),
    );
  });

  test('pays with the key of the MCP request, and has the highest price and the idempotency key as headers', () => {
    const made = request({ max_amount: 0.000001, idempotency_key: 'a b'.slice(0, 1) });
    expect(made.head.authorization).toBe('Bearer key');
    expect(headerOf(made, 'x-acf-max-amount')).toBe('0.000001');
    expect(headerOf(made, 'idempotency-key')).toBe('a');
    expect(headerOf(request({ free_only: true }), 'x-acf-free-only')).toBe('true');
    expect(headerOf(request({ free_only: false }), 'x-acf-free-only')).toBeUndefined();
  });

  test('takes only the host from the headers of the MCP request, to distinguish redirects to the gateway from others', () => {
    const made = request({});
    expect(headerOf(made, 'host')).toBe('gateway.test');
    expect(headerOf(made, 'cookie')).toBeUndefined();
  });

  test.each([
    { max_amount: 0.0000001 },
    { body: 'half \ud800' },
    { path: `/${'a'.repeat(15_360)}` },
    { path: 'v1' },
    { path: '/a?b=c' },
  ])('refuses %j', (args) => {
    expect(() => request(args)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });

  test('is refused for a body that JSON.stringify could not write', () => {
    const body = JSON.parse(`${'['.repeat(9_000)}${']'.repeat(9_000)}`) as unknown;
    expect(() => request({ body })).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });
});
