import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/errors.ts';
import { callResult } from '../../src/mcp/call-answer.ts';

const OURS: readonly (readonly [string, string])[] = [
  ['x-acf-amount', '0.1'],
  ['x-acf-free-tier', 'false'],
  ['x-acf-usage-id', 'id'],
  ['x-acf-balance', '0.9'],
];

const FIXED = { isRefunded: false, chargedMicros: 100_000, authorizedMicros: null };

/** JSON that could be parsed, but not written again. */
const DEEP = `${'['.repeat(9_000)}${']'.repeat(9_000)}`;

function response(
  body: Buffer | string,
  headers: Record<string, string>,
  more: { status?: number; cutBy?: 'size' | 'time' } = {},
) {
  const { status = 200, cutBy = null } = more;
  const all = new Map([...OURS, ...Object.entries(headers)]);
  const answer = { kind: 'response' as const, status, headers: all, body: Buffer.from(body), cutBy };
  return callResult(answer, FIXED).structuredContent as Record<string, unknown>;
}

describe('the answer of call_service', () => {
  test.each([
    ['{"a":1}', 'application/json', { body: { a: 1 } }],
    ['{"a":1}', 'application/problem+json; charset=utf-8', { body: { a: 1 } }],
    ['{"a":', 'application/json', { body: '{"a":' }],
    ['{"a":1}', 'text/plain', { body: '{"a":1}' }],
    [Buffer.from('é', 'latin1'), 'text/plain; charset=iso-8859-1', { body: 'é' }],
    [Buffer.from('é', 'latin1'), 'text/plain', { body_base64: '6Q==' }],
    ['a\0b', 'text/plain', { body_base64: 'YQBi' }],
    ['x', 'text/plain; charset=klingon', { body_base64: 'eA==' }],
  ])('for the body %j of type %s is %j', (body, mediaType, expected) => {
    expect(response(body, { 'content-type': mediaType })).toMatchObject(expected);
  });

  test('leaves JSON as text if it could not be serialised again', () => {
    expect(response(DEEP, { 'content-type': 'application/json' }).body).toBe(DEEP);
  });

  test.each([
    ['{"id":12345678901234567890}', null],
    ['[-9007199254740993]', null],
    ['{"id":"12345678901234567890","a":9007199254740991,"b":0.12345678901234567,"\\"1":[]}', 'json'],
  ])('contains integers as the service sent them: %s', (text, kept) => {
    expect(response(text, { 'content-type': 'application/json' }).body).toEqual(
      kept === null ? text : JSON.parse(text),
    );
  });

  test('names the session of an MCP server, which further messages must name', () => {
    expect(response('', { 'mcp-session-id': 's1' })).toMatchObject({ mcp_session_id: 's1' });
    expect(response('', {})).not.toHaveProperty('mcp_session_id');
  });

  test('does not treat a body with a content coding as text', () => {
    expect(response('x', { 'content-type': 'text/plain', 'content-encoding': 'gzip' })).toMatchObject({
      body_base64: 'eA==',
    });
  });

  test('drops an incomplete last character of a cut body, and leaves cut JSON as text', () => {
    const cut = Buffer.from('{"a":"é').subarray(0, -1);
    const { body, note } = response(cut, { 'content-type': 'application/json' }, { cutBy: 'size' });
    expect(body).toBe('{"a":"');
    expect(note).toMatch(/^\$0\.1 was charged\. .*a repeat .*charged again/i);
  });

  test('says for a stream that was cut off that it was charged', () => {
    const { note, truncated } = response('data: 1', { 'content-type': 'text/event-stream' }, { cutBy: 'time' });
    expect(truncated).toBe(true);
    expect(note).toMatch(/^\$0\.1 was charged\. .*A repeat is charged again/);
  });

  test('says what a repeat with the same idempotency key returns', () => {
    const call = (status: number, cutBy: 'size' | 'time' | null, headers: Record<string, string> = {}) => {
      const all = new Map([...OURS, ...Object.entries(headers)]);
      const answer = { kind: 'response' as const, status, headers: all, body: Buffer.from('x'), cutBy };
      return callResult(answer, FIXED, true).structuredContent as Record<string, unknown>;
    };
    expect(call(200, 'time').note).toContain('A repeat with another idempotency_key is charged.');
    expect(call(400, null).note).toContain('a repeat with another idempotency_key is charged');
    const replayed = call(404, null, { 'idempotent-replayed': 'true' });
    expect(replayed).toMatchObject({ replayed: true, amount: 0.1 });
    expect(replayed.note).toMatch(/^Nothing more was charged: the first call cost \$0\.1\. /);
  });

  test('reports a redirect, and does not follow the redirect', () => {
    expect(response('', { location: '/there' }, { status: 302 })).toMatchObject({
      location: '/there',
      note: '$0.1 was charged. Redirects are not followed.',
    });
  });

  test('says for a response that broke off what was charged', () => {
    const answer = { kind: 'broken' as const, status: 200, headers: new Map(OURS) };
    expect(callResult(answer, { ...FIXED, isRefunded: true, chargedMicros: 0 }).structuredContent).toMatchObject({
      error: 'upstream_error',
      amount: 0,
      usage_id: 'id',
    });
    expect(callResult(answer, FIXED).structuredContent).toMatchObject({
      amount: 0.1,
      note: '$0.1 was charged. A repeat is charged again.',
    });
  });

  test('names a record only for an admitted call: a refused call has none', () => {
    const body = JSON.stringify({ error: 'upstream_error', ...ERRORS.upstream_error });
    const idOf = (headers: readonly (readonly [string, string])[]): unknown =>
      callResult({ kind: 'error', headers: new Map(headers), body }, { ...FIXED, isRefunded: true }).structuredContent
        ?.usage_id;
    expect(idOf([...OURS, ['x-request-id', 'id']])).toBe('id');
    expect(idOf([['x-request-id', 'id']])).toBeUndefined();
  });

  test('never suggests paying twice after an error: each error says first that nothing was charged', () => {
    for (const [error, { status, message }] of Object.entries(ERRORS)) {
      const body = JSON.stringify({ error, message, status });
      const result = callResult(
        { kind: 'error', headers: new Map([['retry-after', '3']]), body },
        { ...FIXED, isRefunded: true },
      );
      expect(result.isError).toBe(true);
      expect(result.structuredContent).toMatchObject({ error, status, amount: 0, retry_after_seconds: 3 });
      expect(result.structuredContent?.note, error).toMatch(/^Nothing (?:more )?was charged\./);
    }
  });

  test('names the first call and its cost if the answer was not kept', () => {
    const body = JSON.stringify({ error: 'answer_not_kept', message: '', status: 422, usage_id: 'first', amount: 0.3 });
    const result = callResult({ kind: 'error', headers: new Map(), body }, FIXED, true);
    expect(result.structuredContent).toMatchObject({
      usage_id: 'first',
      amount: 0.3,
      note: expect.stringMatching(/^Nothing more was charged\. get_usage has the record of the first call/),
    });
  });
});
