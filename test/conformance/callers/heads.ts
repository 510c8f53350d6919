// Request lines and header fields.

import { type CallerCase, EVIL, get } from './case.ts';

const END = '\r\n\r\n';
/** Refused, by us or by the addon, or closed without a word. */
const refused = { refused: [400, 431, 505], closed: true } as const;
/** Or not taken for a whole head: nothing is read from it until the caller is cut for its silence. */
const unfinished = { ...refused, waits: true } as const;
const line = (text: string): string => `${text}\r\nHost: gateway.test\r\n{auth}\r\n`;
const field = (text: string): string => `${get(text)}${END}`;

const BAD_LINES: readonly (readonly [name: string, wire: string])[] = [
  ['a bare LF behind the request line', `GET {path} HTTP/1.1\nHost: gateway.test\r\n{auth}\r\n`],
  ['bare LFs everywhere', 'GET {path} HTTP/1.1\nHost: gateway.test\n\n'],
  ['bare CRs everywhere', 'GET {path} HTTP/1.1\rHost: gateway.test\r\r'],
  ['two spaces before the target', line('GET  {path} HTTP/1.1')],
  ['two spaces behind the target', line('GET {path}  HTTP/1.1')],
  ['a tab before the target', line('GET\t{path} HTTP/1.1')],
  ['a tab behind the target', line('GET {path}\tHTTP/1.1')],
  ['a space behind the version', line('GET {path} HTTP/1.1 ')],
  ['a space before the method', line(' GET {path} HTTP/1.1')],
  ['a space in the target', line('GET {path}/a b HTTP/1.1')],
  ['a request in the target', line('GET {path} HTTP/1.1 HTTP/1.1')],
  ['no target', line('GET HTTP/1.1')],
  ['no version', line('GET {path}')],
  ['HTTP/0.9', 'GET {path}\r\n'],
  ['HTTP/1.0', line('GET {path} HTTP/1.0')],
  ['HTTP/1.2', line('GET {path} HTTP/1.2')],
  ['HTTP/2.0', line('GET {path} HTTP/2.0')],
  ['HTTP/1.10', line('GET {path} HTTP/1.10')],
  ['HTTP/01.1', line('GET {path} HTTP/01.1')],
  ['HTTP/1', line('GET {path} HTTP/1')],
  ['http in lower case', line('GET {path} http/1.1')],
  ['another protocol', line('GET {path} ICAP/1.1')],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n\r\n'],
  ['another protocol altogether', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
  ['a proxy line before the request', `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${line('GET {path} HTTP/1.1')}`],
  ['absolute form', line('GET http://gateway.test{path} HTTP/1.1')],
  ['absolute form of another host', line('GET http://169.254.169.254{path} HTTP/1.1')],
  ['authority form', line('CONNECT gateway.test:80 HTTP/1.1')],
  ['asterisk form', line('GET * HTTP/1.1')],
  ['a target without its slash', line('GET api/v1 HTTP/1.1')],
  ['NUL in the target', line('GET {path}/\x00 HTTP/1.1')],
  ['a control character in the target', line('GET {path}/\x01 HTTP/1.1')],
  ['DEL in the target', line('GET {path}/\x7f HTTP/1.1')],
  ['a fragment', line('GET {path}#x HTTP/1.1')],
  ['octets beyond ASCII in the target', line('GET {path}/\xff\xfe HTTP/1.1')],
  ['octets beyond ASCII in the query', line('GET {path}?\xe4 HTTP/1.1')],
  ['a bare CR in the target', line('GET {path}/\rX: y HTTP/1.1')],
  ['NUL in the method', line('G\x00T {path} HTTP/1.1')],
  ['a method of 20 000 letters', line(`${'A'.repeat(20_000)} {path} HTTP/1.1`)],
  ['a target of 20 000 octets', line(`GET {path}/${'a'.repeat(20_000)} HTTP/1.1`)],
];

const BAD_FIELDS: readonly (readonly [name: string, lines: string])[] = [
  ['a bare LF behind a field', 'X: y\nZ: z'],
  ['a bare LF that hides a field', 'X: y\nContent-Length: 50'],
  ['a bare CR in a value', 'X: y\rz'],
  ['CR CR LF', 'X: y\r\r\nZ: z'],
  ['NUL in a value', 'X: y\x00z'],
  ['a control character in a value', 'X: y\x01z'],
  ['DEL in a value', 'X: y\x7fz'],
  ['a vertical tab in a value', 'X: y\x0bz'],
  ['octets that are no UTF-8', 'X: \xff\xfey'],
  ['NUL in a name', 'X\x00Y: z'],
  ['a space in a name', 'X Y: z'],
  ['a tab in a name', 'X\tY: z'],
  ['a space before the colon', 'X : y'],
  ['an empty name', ': y'],
  ['no colon', 'X'],
  ['brackets in a name', 'X[]: y'],
  ['a slash in a name', 'X/Y: z'],
  ['octets beyond ASCII in a name', 'X\xe4: y'],
  ['a folded field', 'X: y\r\n z'],
  ['a folded first field', ' X: y'],
  ['a line of blanks', 'X: y\r\n \t\r\nZ: z'],
  ['two hosts', 'Host: gateway.test'],
  ['two hosts that differ', 'Host: other.test'],
  ['two keys', 'Authorization: Bearer acf_x:sk_y'],
  ['a header of 20 000 octets', `X: ${'y'.repeat(20_000)}`],
  ['a name of 20 000 octets', `${'x'.repeat(20_000)}: y`],
  ['5 000 headers', Array.from({ length: 5_000 }, (_, i) => `X${i}: y`).join('\r\n')],
];

export const HEADS: readonly CallerCase[] = [
  { name: 'a plain request', wire: field('X: y'), allowed: { served: { method: 'GET', body: '' } } },
  { name: 'an empty value', wire: field('X:'), allowed: { served: { method: 'GET', body: '' } } },
  { name: 'obs-text that is UTF-8', wire: field('X: a\xc3\xa4b'), allowed: { served: { method: 'GET' } } },
  {
    name: 'an empty line before the request',
    wire: `\r\n${field('X: y')}`,
    allowed: { served: { method: 'GET' }, ...unfinished },
  },
  {
    name: '300 headers',
    wire: field(Array.from({ length: 300 }, (_, i) => `X${i}: y`).join('\r\n')),
    allowed: { served: { method: 'GET' }, ...refused },
  },
  ...BAD_LINES.map(([name, wire]): CallerCase => ({ name, wire: wire + EVIL, allowed: unfinished })),
  ...BAD_FIELDS.map(([name, lines]): CallerCase => ({ name, wire: field(lines) + EVIL, allowed: unfinished })),
  { name: 'no host', wire: `GET {path} HTTP/1.1\r\n{auth}\r\n${EVIL}`, allowed: refused },
  {
    name: 'an empty host',
    wire: 'GET {path} HTTP/1.1\r\nHost:\r\n{auth}\r\n',
    allowed: { served: { method: 'GET' }, ...refused },
  },
  {
    name: 'a host with a user, a path and a list',
    wire: 'GET {path} HTTP/1.1\r\nHost: a@b/c, d\r\n{auth}\r\n',
    allowed: { served: { method: 'GET' }, ...refused },
  },
  ...['OPTIONS', 'TRACE', 'PROPFIND', 'get', 'GEt', 'BREW', 'G', 'PRI'].map(
    (method): CallerCase => ({
      name: `method ${method}`,
      wire: `${method} {path} HTTP/1.1\r\nHost: gateway.test\r\n{auth}\r\n`,
      allowed: { answered: [405], refused: [400, 405, 505], closed: true },
    }),
  ),
  { name: 'half a request line', wire: 'GET /api/v1/pro', allowed: { waits: true } },
  { name: 'half a head', wire: get('X: y\r\n'), allowed: { waits: true } },
  { name: 'a head without its last LF', wire: `${get('X: y')}\r\n\r`, allowed: { waits: true } },
  { name: 'a head octet by octet', wire: field('X: y'), drip: true, allowed: { served: { method: 'GET' } } },
];
