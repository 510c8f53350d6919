// Transfer-Encoding, and the parts that chunks consist of.

import { asHead, type CallerCase, EVIL, IN_CHUNKS, post } from './case.ts';

/** The addon answers 505 to a body that it cannot read. */
const refused = { refused: [400, 505], closed: true } as const;
const unfinished = { ...refused, waits: true } as const;
const chunked = (body: string): string => post('Transfer-Encoding: chunked', body);

const BAD_CODINGS: readonly (readonly [name: string, line: string])[] = [
  ['a coding nobody knows', 'Transfer-Encoding: zorg'],
  ['xchunked', 'Transfer-Encoding: xchunked'],
  ['chunkedx', 'Transfer-Encoding: chunkedx'],
  ['chunk', 'Transfer-Encoding: chunk'],
  ['identity', 'Transfer-Encoding: identity'],
  ['an empty coding', 'Transfer-Encoding:'],
  ['gzip', 'Transfer-Encoding: gzip'],
  ['gzip, chunked', 'Transfer-Encoding: gzip, chunked'],
  ['chunked, gzip', 'Transfer-Encoding: chunked, gzip'],
  ['chunked, identity', 'Transfer-Encoding: chunked, identity'],
  ['chunked twice in a list', 'Transfer-Encoding: chunked, chunked'],
  ['chunked in two lines', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
  ['chunked and then identity', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'],
  ['identity and then chunked', 'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked'],
  ['a comma before chunked', 'Transfer-Encoding: ,chunked'],
  ['a comma after chunked', 'Transfer-Encoding: chunked,'],
  ['a parameter', 'Transfer-Encoding: chunked;q=1'],
  ['quotes', 'Transfer-Encoding: "chunked"'],
  ['a vertical tab before', 'Transfer-Encoding: \x0bchunked'],
  ['a form feed after', 'Transfer-Encoding: chunked\x0c'],
  ['NUL after', 'Transfer-Encoding: chunked\x00'],
  ['a CR after', 'Transfer-Encoding: chunked\r\r\n'],
  ['the Kelvin sign, which lower-cases to k', 'Transfer-Encoding: chun\xe2\x84\xaaed'],
  ['obs-text within', 'Transfer-Encoding: chun\xa0ked'],
  ['nothing but obs-text', 'Transfer-Encoding: \xa0'],
  ['folded', 'Transfer-Encoding:\r\n chunked'],
  ['folded with a tab', 'Transfer-Encoding: \r\n\tchunked'],
  ['a space before the colon', 'Transfer-Encoding : chunked'],
  ['a tab before the colon', 'Transfer-Encoding\t: chunked'],
  ['NUL in the name', 'Transfer-Encoding\x00: chunked'],
  ['a leading space', ' Transfer-Encoding: chunked'],
  ['a bare LF before the line', 'X: y\nTransfer-Encoding: chunked'],
  ['a bare CR before the line', 'X: y\rTransfer-Encoding: chunked'],
];

/** The addon treats bytes above 0x7f as blanks at both ends of a value, and hides them from us. */
const HIDDEN_BLANKS: readonly (readonly [name: string, line: string])[] = [
  ['obs-text after', 'Transfer-Encoding: chunked\xa0'],
  ['obs-text before', 'Transfer-Encoding: \xff\xa0chunked'],
];

/** Malformed chunked bodies. The gateway passes on nothing from the fault on. */
const BAD_CHUNKS: readonly (readonly [name: string, body: string])[] = [
  ['a signed size', '+5\r\nhello\r\n0\r\n\r\n'],
  ['a negative size', '-5\r\nhello\r\n0\r\n\r\n'],
  ['a size with a prefix', '0x5\r\nhello\r\n0\r\n\r\n'],
  ['a size with an underscore', '0_5\r\nhello\r\n0\r\n\r\n'],
  ['a comma after the size', '5,\r\nhello\r\n0\r\n\r\n'],
  ['a full stop in the size', '5.0\r\nhello\r\n0\r\n\r\n'],
  ['a slash after the size', '5/\r\nhello\r\n0\r\n\r\n'],
  ['a grave accent as a digit', '`\r\nhello\r\n0\r\n\r\n'],
  ['a size beyond 64 bits', '10000000000000005\r\nhello\r\n0\r\n\r\n'],
  ['a size beyond 32 bits', '100000005\r\nhello\r\n0\r\n\r\n'],
  ['a size beyond 63 bits', 'ffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
  ['an endless extension', `5;${'a'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`],
];

/**
 * Malformed chunked bodies that the addon accepts: it takes ':' to '@' and 'G' for digits, ends a size at any byte up to 0x20 or
 * above 0x7f, ignores everything from there to the next LF, and does not check the CRLF after the data.
 */
const LENIENT_CHUNKS: readonly (readonly [name: string, body: string])[] = [
  ['a size in letters', 'g\r\nhello\r\n0\r\n\r\n'],
  ['a space after the size', '5 \r\nhello\r\n0\r\n\r\n'],
  ['a tab after the size', '5\t\r\nhello\r\n0\r\n\r\n'],
  ['a colon as a digit', '5:\r\nhello\r\n0\r\n\r\n'],
  ['an at sign as a digit', '@\r\nhello\r\n0\r\n\r\n'],
  ['NUL after the size', '5\x00\r\nhello\r\n0\r\n\r\n'],
  ['a bare LF after the size', '5\nhello\r\n0\r\n\r\n'],
  ['a bare CR after the size', '5\rhello\r\n0\r\n\r\n'],
  ['CR CR LF after the size', '5\r\r\nhello\r\n0\r\n\r\n'],
  ['data longer than its size', '5\r\nhello!!\r\n0\r\n\r\n'],
  ['data two octets longer than its size', '3\r\nhello\r\n0\r\n\r\n'],
  ['no CRLF after the data', '5\r\nhello0\r\n\r\n'],
  ['other octets for CRLF after the data', '5\r\nhelloXX0\r\n\r\n'],
  ['a bare LF after the data', '5\r\nhello\n0\r\n\r\n'],
  ['an extension', '5;a=b\r\nhello\r\n0\r\n\r\n'],
  ['an extension without a name', '5;\r\nhello\r\n0\r\n\r\n'],
  ['a space before an extension', '5 ;a\r\nhello\r\n0\r\n\r\n'],
  ['an extension with a bare LF', '5;a\nhello\r\n0\r\n\r\n'],
  ['an extension with a bare CR', '5;a\rb\r\nhello\r\n0\r\n\r\n'],
  ['an extension that hides a chunk', '2;\n5\r\nhello\r\n0\r\n\r\n'],
  ['obs-text after the size', '5\xa0\r\nhello\r\n0\r\n\r\n'],
  ['words after the size', '5 is the size\r\nhello\r\n0\r\n\r\n'],
  ['a size in two parts', '1 0\r\nh\r\n0\r\n\r\n'],
  ...[...':;<=>?@'].map((digit, i): [string, string] => [
    `${digit} for ${10 + i}`,
    `${digit}\r\n${'x'.repeat(10 + i)}\r\n0\r\n\r\n`,
  ]),
  ['g for 16', `g\r\n${'x'.repeat(16)}\r\n0\r\n\r\n`],
];

/** The addon takes these for the last chunk. The bytes after it are never read, because the connection ends. */
const EMPTY_CHUNKS: readonly (readonly [name: string, body: string])[] = [
  ['no size', '\r\nhello\r\n0\r\n\r\n'],
  ['a space before the size', ' 5\r\nhello\r\n0\r\n\r\n'],
  ['NUL in the size', '\x005\r\nhello\r\n0\r\n\r\n'],
];

/** Ends that are not exactly CRLF. Parsers differ on whether such a body is whole, so no request after it may be served. */
const BAD_ENDS: readonly (readonly [name: string, end: string])[] = [
  ['a trailer', '0\r\nX: y\r\n\r\n'],
  ['a length in the trailer', '0\r\nContent-Length: 5\r\n\r\n'],
  ['a coding in the trailer', '0\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['a host in the trailer', '0\r\nHost: other\r\n\r\n'],
  ['a key in the trailer', '0\r\nAuthorization: Bearer x\r\n\r\n'],
  ['a bare LF in the trailer', '0\r\nX: y\n\r\n'],
  ['a bare LF as the last line', '0\r\n\n'],
  ['a bare LF after the last size', '0\n\r\n'],
  ['bare LFs at the end', '0\n\n'],
  ['a bare CR at the end', '0\r\n\rX'],
  ['an extension on the last chunk', '0;a=b\r\n\r\n'],
];

const BAD_CODING_CASES = BAD_CODINGS.map(
  ([name, line]): CallerCase => ({
    name: `coding: ${name}`,
    wire: post(line, '5\r\nhello\r\n0\r\n\r\n'),
    rest: EVIL,
    allowed: unfinished,
  }),
);

export const CODINGS: readonly CallerCase[] = [
  { name: 'chunks', wire: chunked('5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n'), allowed: { served: { body: 'hello!' } } },
  { name: 'no chunks', wire: chunked('0\r\n\r\n'), allowed: { served: { body: '' } } },
  {
    name: 'sizes in capitals',
    wire: chunked('A\r\nhellohello\r\n0\r\n\r\n'),
    allowed: { served: { body: 'hellohello' } },
  },
  {
    name: 'sizes with leading zeros',
    wire: chunked('0005\r\nhello\r\n000\r\n\r\n'),
    allowed: { served: { body: 'hello' }, cut: true, refused: [400] },
  },
  {
    name: 'chunked in capitals',
    wire: post('TRANSFER-ENCODING: CHUNKED', '5\r\nhello\r\n0\r\n\r\n'),
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'blanks around chunked',
    wire: post('Transfer-Encoding: \t chunked \t', '5\r\nhello\r\n0\r\n\r\n'),
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'Transfer_Encoding, which is another header',
    wire: post('Transfer_Encoding: chunked\r\nContent-Length: 5', 'hello'),
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'a coding that Connection names',
    wire: post('Connection: transfer-encoding\r\nTransfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'),
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'a length that Connection names',
    wire: post('Connection: close, content-length\r\nContent-Length: 5', 'hello'),
    allowed: { served: { body: 'hello' } },
  },
  ...BAD_CODING_CASES,
  ...BAD_CODING_CASES.map(asHead),
  ...BAD_CHUNKS.map(
    ([name, body]): CallerCase => ({
      name: `chunk: ${name}`,
      wire: chunked(body),
      rest: EVIL,
      allowed: { ...refused, cut: true, waits: true },
    }),
  ),
  ...LENIENT_CHUNKS.map(
    ([name, body]): CallerCase => ({
      name: `chunk: ${name}`,
      wire: chunked(body),
      rest: EVIL,
      allowed: { ...refused, cut: true, waits: true, lenient: true },
    }),
  ),
  ...HIDDEN_BLANKS.map(
    ([name, line]): CallerCase => ({
      name: `coding: ${name}`,
      wire: post(line, '5\r\nhello\r\n0\r\n\r\n'),
      rest: EVIL,
      allowed: { ...refused, cut: true, lenient: true },
    }),
  ),
  ...EMPTY_CHUNKS.map(
    ([name, body]): CallerCase => ({
      name: `chunk: ${name}`,
      wire: chunked(body),
      rest: EVIL,
      allowed: { ...refused, cut: true, served: { body: '' } },
    }),
  ),
  ...BAD_ENDS.map(
    ([name, end]): CallerCase => ({
      name: `end: ${name}`,
      wire: chunked(`5\r\nhello\r\n${end}`),
      rest: EVIL,
      allowed: { ...refused, cut: true, served: { body: 'hello' }, waits: true },
    }),
  ),
  { name: 'chunks without an end', wire: chunked('5\r\nhello\r\n'), allowed: { waits: true } },
  { name: 'half a chunk', wire: chunked('5\r\nhel'), allowed: { waits: true } },
  { name: 'half a size', wire: chunked('5'), allowed: { waits: true } },
  {
    name: 'the end without its last CRLF',
    wire: chunked('5\r\nhello\r\n0\r\n'),
    allowed: { waits: true, served: { body: 'hello' } },
  },
  {
    name: 'a request after the end',
    wire: chunked('5\r\nhello\r\n0\r\n\r\n'),
    rest: EVIL,
    allowed: { served: { body: 'hello' }, cut: true },
  },
  {
    name: 'a request after the end, when the answer is in chunks too',
    wire: chunked('5\r\nhello\r\n0\r\n\r\n').replace('{path}', `{path}${IN_CHUNKS}`),
    rest: EVIL,
    allowed: { served: { suffix: IN_CHUNKS, body: 'hello' }, cut: true },
  },
];
