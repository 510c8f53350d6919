import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from './parse.ts';

const HEAD = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;

const MALFORMED: [name: string, wire: string][] = [
  ['another protocol', 'HTTP/2.0 200 OK\r\n\r\n'],
  ['an HTTP version that does not exist', 'HTTP/1.2 200 OK\r\n\r\n'],
  ['HTTP/0.9', '<html>hello there</html>'],
  ['lower-case protocol', 'http/1.1 200 OK\r\n\r\n'],
  ['an empty line before the response', `\r\n${HEAD}\r\n`],
  ['a space before the response', ` ${HEAD}\r\n`],
  ['status below 100', 'HTTP/1.1 099 No\r\n\r\n'],
  ['status above 599', 'HTTP/1.1 600 No\r\n\r\n'],
  ['two-digit status', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['four-digit status', 'HTTP/1.1 2000 OK\r\n\r\n'],
  ['status with a letter', 'HTTP/1.1 2x0 OK\r\n\r\n'],
  ['two spaces before the status', 'HTTP/1.1  200 OK\r\n\r\n'],
  ['a tab before the status', 'HTTP/1.1\t200 OK\r\n\r\n'],
  ['101, when nobody asked for it', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
  ['eleven interim responses', `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(11)}${HEAD}\r\n`],
  ['bare LF behind the status line', 'HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n'],
  ['bare LF behind a header', `${HEAD}A: b\nContent-Length: 0\r\n\r\n`],
  ['bare LF as the empty line', `${HEAD}A: b\r\n\n`],
  ['bare LF everywhere', 'HTTP/1.1 200 OK\n\n'],
  ['bare CR in the status line', 'HTTP/1.1 200 O\rK\r\n\r\n'],
  ['bare CR in a value', `${HEAD}A: b\rc\r\n\r\n`],
  ['CR CR LF', `${HEAD}A: b\r\r\n\r\n`],
  ['CR as the empty line', `${HEAD}A: b\r\n\rX`],
  ['NUL in the reason phrase', 'HTTP/1.1 200 O\0K\r\n\r\n'],
  ['NUL in a value', `${HEAD}A: b\0c\r\n\r\n`],
  ['a control character in a value', `${HEAD}A: b\x01c\r\n\r\n`],
  ['DEL in a value', `${HEAD}A: b\x7fc\r\n\r\n`],
  ['an empty header name', `${HEAD}: b\r\n\r\n`],
  ['a header without a colon', `${HEAD}Content-Length\r\n\r\n`],
  ['a space before the colon', `${HEAD}Content-Length : 5\r\n\r\n`],
  ['a space in a header name', `${HEAD}Content Length: 5\r\n\r\n`],
  ['a header name outside ASCII', `${HEAD}N\xe4me: 5\r\n\r\n`],
  ['obsolete line folding', `${HEAD}A: b\r\n c\r\n\r\n`],
  ['folding with a tab', `${HEAD}A: b\r\n\tc\r\n\r\n`],
  ['folding the first header', `${HEAD} A: b\r\n\r\n`],
  ['a folded Transfer-Encoding', `${HEAD}Transfer-Encoding:\r\n chunked\r\n\r\n`],
  ['different Content-Lengths', `${HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\n`],
  ['equal Content-Lengths', `${HEAD}Content-Length: 5\r\nContent-Length: 5\r\n\r\n`],
  ['a list of Content-Lengths', `${HEAD}Content-Length: 5, 5\r\n\r\n`],
  ['an empty Content-Length', `${HEAD}Content-Length:\r\n\r\n`],
  ['a negative Content-Length', `${HEAD}Content-Length: -5\r\n\r\n`],
  ['a signed Content-Length', `${HEAD}Content-Length: +5\r\n\r\n`],
  ['a hexadecimal Content-Length', `${HEAD}Content-Length: 0x5\r\n\r\n`],
  ['a fractional Content-Length', `${HEAD}Content-Length: 5.0\r\n\r\n`],
  ['Content-Length in other digits', `${HEAD}Content-Length: \xb2\r\n\r\n`],
  ['a Content-Length beyond any integer', `${HEAD}Content-Length: 9999999999999999\r\n\r\n`],
  ['Content-Length and Transfer-Encoding', `${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`],
  ['Transfer-Encoding and Content-Length', `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n`],
  ['Transfer-Encoding other than chunked', `${HEAD}Transfer-Encoding: gzip\r\n\r\n`],
  ['Transfer-Encoding identity', `${HEAD}Transfer-Encoding: identity\r\n\r\n`],
  ['a list of transfer codings', `${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n`],
  ['chunked twice in a list', `${HEAD}Transfer-Encoding: chunked, chunked\r\n\r\n`],
  ['chunked twice', `${HEAD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`],
  ['chunked with a parameter', `${HEAD}Transfer-Encoding: chunked;q=1\r\n\r\n`],
  ['an empty Transfer-Encoding', `${HEAD}Transfer-Encoding:\r\n\r\n`],
  ['a control character hiding chunked', `${HEAD}Transfer-Encoding: \x0bchunked\r\n\r\n`],
  ['Transfer-Encoding in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['framing headers in conflict on a 204', 'HTTP/1.1 204 x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a chunk without a size', `${CHUNKED}\r\nab`],
  ['a chunk size that is not hexadecimal', `${CHUNKED}g\r\n`],
  ['a chunk size with a sign', `${CHUNKED}+2\r\nhi\r\n`],
  ['a chunk size with a prefix', `${CHUNKED}0x2\r\nhi\r\n`],
  ['a space before a chunk size', `${CHUNKED} 2\r\nhi\r\n`],
  ['a space behind a chunk size', `${CHUNKED}2 \r\nhi\r\n`],
  ['an underscore in a chunk size', `${CHUNKED}1_0\r\n`],
  ['a chunk size of 14 digits', `${CHUNKED}00000000000002\r\nhi\r\n`],
  ['bare LF behind a chunk size', `${CHUNKED}2\nhi\r\n0\r\n\r\n`],
  ['bare CR behind a chunk size', `${CHUNKED}2\rhi\r\n0\r\n\r\n`],
  ['bare LF in an extension', `${CHUNKED}2;a\nhi\r\n0\r\n\r\n`],
  ['a control character in an extension', `${CHUNKED}2;a\0\r\nhi\r\n`],
  ['endless extensions', `${CHUNKED}2;${'a'.repeat(16_385)}\r\nhi\r\n`],
  ['extensions that add up', `${CHUNKED}${`1;${'a'.repeat(1000)}\r\nx\r\n`.repeat(17)}`],
  ['chunk data longer than its size', `${CHUNKED}2\r\nhello\r\n0\r\n\r\n`],
  ['chunk data shorter than its size', `${CHUNKED}6\r\nhello\r\n0\r\n\r\n`],
  ['bare LF behind chunk data', `${CHUNKED}2\r\nhi\n0\r\n\r\n`],
  ['bare CR behind chunk data', `${CHUNKED}2\r\nhi\r0\r\n\r\n`],
  ['bare LF at the end', `${CHUNKED}0\r\n\n`],
  ['bare CR at the end', `${CHUNKED}0\r\n\rx`],
  ['a folded trailer', `${CHUNKED}0\r\nA: b\r\n c\r\n\r\n`],
  ['a trailer without a name', `${CHUNKED}0\r\n: b\r\n\r\n`],
  ['a trailer with a space before the colon', `${CHUNKED}0\r\nA : b\r\n\r\n`],
  ['a trailer without a colon', `${CHUNKED}0\r\nA\r\n\r\n`],
  ['bare LF behind a trailer', `${CHUNKED}0\r\nA: b\n\r\n`],
  ['NUL in a trailer', `${CHUNKED}0\r\nA: \0\r\n\r\n`],
  ['endless trailers', `${CHUNKED}0\r\n${'A: b\r\n'.repeat(700)}\r\n`],
  ['a head beyond the bound', `${HEAD}A: ${'a'.repeat(4096)}\r\n\r\n`],
  ['many headers beyond the bound', `${HEAD}${'A: b\r\n'.repeat(700)}\r\n`],
  ['interim heads that add up beyond the bound', `HTTP/1.1 100 x\r\nA: ${'a'.repeat(1000)}\r\n\r\n`.repeat(5)],
];

describe('what RFC 9112 does not allow is refused, in one piece and octet by octet', () => {
  test.each(MALFORMED)('%s', (_name, wire) => {
    const whole = parse([wire]);
    expect(whole.malformed).not.toBe('');
    expect(whole.state).toBe('failed');
    // A fault in a head is seen at the end of its line.
    const drip = parse([...wire, '\n']);
    expect(drip).toMatchObject({ state: 'failed', malformed: whole.malformed });
  });
});

test('a fault is seen without waiting for the end of the head', () => {
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

test('a head of exactly the bound passes', () => {
  const wire = `${HEAD}Content-Length: 0\r\nA: `;
  const filled = `${wire}${'a'.repeat(4096 - wire.length - 4)}\r\n\r\n`;
  expect(filled.length).toBe(4096);
  expect(parse([filled]).state).toBe('done');
  expect(parse([...filled]).state).toBe('done');
  expect(parse([filled.replace('A: ', 'A: a')]).malformed).toBe('head too large');
});

test('ten interim responses pass', () => {
  expect(parse([`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(10)}${HEAD}Content-Length: 0\r\n\r\n`]).state).toBe('done');
});

test('random octets never throw, and read the same however they are split', () => {
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
