import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HEAD, MALFORMED_BODIES, MALFORMED_HEADS, TOO_LARGE } from './malformed-responses.ts';
import { parse } from './parse.ts';

const MALFORMED = [...MALFORMED_HEADS, ...MALFORMED_BODIES, ...TOO_LARGE];

describe('a response that RFC 9112 does not allow is refused, whether read in one piece or octet by octet', () => {
  test.each(MALFORMED)('%s', (_name, wire) => {
    const whole = parse([wire]);
    expect(whole.malformed).not.toBe('');
    expect(whole.state).toBe('failed');
    // The parser sees a fault in a head at the end of the faulty line.
    const drip = parse([...wire, '\n']);
    expect(drip).toMatchObject({ state: 'failed', malformed: whole.malformed });
  });
});

test('a fault is reported without waiting for the end of the head', () => {
  for (const wire of [
    'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTP/1.1 200 OK\nA',
    `${HEAD}A: b\nC`,
    `${HEAD} `,
    `${HEAD}Content-Length `,
  ]) {
    expect(parse([wire]).state, JSON.stringify(wire)).toBe('failed');
  }
});

test('the position of a fault is never before the piece of input that contains the fault', () => {
  // A case that the fuzzer found.
  expect(parse(['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r', ':\n'])).toMatchObject({
    state: 'failed',
    surplus: 2,
  });
});

test('a head of exactly the maximum size is accepted', () => {
  const wire = `${HEAD}Content-Length: 0\r\nA: `;
  const filled = `${wire}${'a'.repeat(4096 - wire.length - 4)}\r\n\r\n`;
  expect(filled.length).toBe(4096);
  expect(parse([filled]).state).toBe('done');
  expect(parse([...filled]).state).toBe('done');
  expect(parse([filled.replace('A: ', 'A: a')]).malformed).toBe('head too large');
});

test('ten interim responses are accepted', () => {
  expect(parse([`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(10)}${HEAD}Content-Length: 0\r\n\r\n`]).state).toBe('done');
});

test('the parser never throws on random octets, and gives the same result however they are split', () => {
  const nearHttp = fc
    .array(
      fc.constantFrom(
        'HTTP/1.1 200 OK\r\n',
        'Content-Length: 3\r\n',
        'Transfer-Encoding: chunked\r\n',
        '\r\n',
        '3\r\nabc\r\n',
        '0\r\n\r\n',
        '\n',
        ' ',
        ':',
        'a',
        '\0',
        '\xff',
      ),
      { maxLength: 12 },
    )
    .map((parts) => `${parts.join('')}\n\n`);
  fc.assert(
    fc.property(nearHttp, (wire) => {
      const { state, body, malformed } = parse([wire]);
      const drip = parse([...wire]);
      expect(drip.state).toBe(state);
      expect(drip.malformed).toBe(malformed);
      expect(drip.body).toBe(body);
    }),
    { numRuns: 2000 },
  );
});
