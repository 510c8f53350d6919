// Content-Length, alone and beside Transfer-Encoding: all parsers must agree on where the message ends.

import { asHead, type CallerCase, EVIL, EVIL_BODY, get, post } from './case.ts';

const refused = { refused: [400], closed: true } as const;
const hello = (line: string): string => post(line, 'hello');

const BAD_LENGTHS: readonly (readonly [name: string, line: string])[] = [
  ['two equal lengths', 'Content-Length: 5\r\nContent-Length: 5'],
  ['two different lengths, the larger first', 'Content-Length: 5\r\nContent-Length: 0'],
  ['two different lengths, the smaller first', 'Content-Length: 0\r\nContent-Length: 5'],
  ['two lengths with a header between', 'Content-Length: 5\r\nX: y\r\ncontent-length: 6'],
  ['a list of equal lengths', 'Content-Length: 5, 5'],
  ['a list of different lengths', 'Content-Length: 5, 0'],
  ['a length and an empty item', 'Content-Length: 5,'],
  ['an empty length', 'Content-Length:'],
  ['a length of blanks', 'Content-Length: \t '],
  ['a signed length', 'Content-Length: +5'],
  ['a negative length', 'Content-Length: -5'],
  ['minus zero', 'Content-Length: -0'],
  ['a hexadecimal length', 'Content-Length: 0x5'],
  ['a length in letters', 'Content-Length: five'],
  ['a fractional length', 'Content-Length: 5.0'],
  ['a length with an exponent', 'Content-Length: 5e0'],
  ['a length with an underscore', 'Content-Length: 0_5'],
  ['a space within the length', 'Content-Length: 1 5'],
  ['a length and a parameter', 'Content-Length: 5;q=1'],
  ['a length in quotes', 'Content-Length: "5"'],
  ['a vertical tab before the length', 'Content-Length: \x0b5'],
  ['a form feed after the length', 'Content-Length: 5\x0c'],
  ['NUL after the length', 'Content-Length: 5\x00'],
  ['a length in other digits', 'Content-Length: \xb2'],
  ['a length in digits of another script', 'Content-Length: \xd9\xa5'],
  ['obs-text within a length', 'Content-Length: 1\xa05'],
  ['obs-text that is UTF-8 within a length', 'Content-Length: 1\xc2\xa05'],
  ['a length beyond 64 bits', 'Content-Length: 18446744073709551621'],
  ['a length beyond 63 bits', 'Content-Length: 9223372036854775808'],
  ['a length beyond any integer', `Content-Length: ${'9'.repeat(40)}`],
  ['a length of sixteen digits', 'Content-Length: 0000000000000005'],
  ['a folded length', 'Content-Length:\r\n 5'],
  ['a space before the colon', 'Content-Length : 5'],
  ['a tab before the colon', 'Content-Length\t: 5'],
  ['a length and a coding', 'Content-Length: 5\r\nTransfer-Encoding: chunked'],
  ['a coding and a length', 'Transfer-Encoding: chunked\r\nContent-Length: 5'],
  ['a length and a coding nobody knows', 'Content-Length: 5\r\nTransfer-Encoding: zorg'],
  ['a length and an empty coding', 'Content-Length: 5\r\nTransfer-Encoding:'],
  ['a length and the coding identity', 'Content-Length: 5\r\nTransfer-Encoding: identity'],
];

export const LENGTHS: readonly CallerCase[] = [
  { name: 'a plain length', wire: hello('Content-Length: 5'), allowed: { served: { body: 'hello' } } },
  { name: 'leading zeros', wire: hello('Content-Length: 005'), allowed: { served: { body: 'hello' }, ...refused } },
  { name: 'blanks around the length', wire: hello('Content-Length: \t 5 \t'), allowed: { served: { body: 'hello' } } },
  // The addon treats bytes above 0x7f as blanks at both ends of a value, and hides them from us.
  ...['5\xa0', '\xff\xa05'].map(
    (length): CallerCase => ({
      name: `obs-text beside the length: ${JSON.stringify(length)}`,
      wire: hello(`Content-Length: ${length}`),
      rest: EVIL,
      allowed: { served: { body: 'hello' }, ...refused, cut: true, second: true },
    }),
  ),
  { name: 'a length of zero', wire: post('Content-Length: 0'), allowed: { served: { body: '' } } },
  { name: 'POST without a length', wire: post('X: y'), allowed: { served: { body: '' } } },
  {
    name: 'GET with a body',
    wire: `${get('Content-Length: 5\r\n')}\r\nhello`,
    allowed: { served: { method: 'GET', body: 'hello' } },
  },
  {
    name: 'a body that looks like a request',
    wire: post('Content-Length: {evil-length}', EVIL_BODY),
    allowed: { served: { body: EVIL_BODY } },
  },
  ...BAD_LENGTHS.map(([name, line]): CallerCase => ({ name, wire: hello(line), allowed: refused })),
  ...BAD_LENGTHS.map(
    ([name, line]): CallerCase => ({
      name: `${name}, then a smuggled request`,
      wire: post(line, '0\r\n\r\n'),
      rest: EVIL,
      allowed: refused,
    }),
  ),
  ...BAD_LENGTHS.map(([name, line]) => asHead({ name, wire: hello(line), allowed: refused })),
  {
    name: 'Content_Length, which is another header',
    wire: post('Content_Length: 30', 'hello'),
    allowed: { served: { body: '' }, cut: true, surplus: true },
  },
  {
    name: 'more octets than the length, which are no request',
    wire: hello('Content-Length: 2'),
    allowed: { served: { body: 'he' }, cut: true, surplus: true },
  },
  {
    name: 'more octets than the length, which are a request',
    wire: hello('Content-Length: 5'),
    rest: EVIL,
    allowed: { served: { body: 'hello' }, cut: true, second: true },
  },
  { name: 'fewer octets than the length', wire: hello('Content-Length: 6'), allowed: { waits: true } },
  {
    name: 'a length above the bound on bodies',
    wire: post('Content-Length: 999999999999999', 'hello'),
    allowed: { refused: [413] },
  },
];
