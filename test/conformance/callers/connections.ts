// What a caller does with its connection: pipelining, Expect, Upgrade, bodies in pieces, early ends.

import { type CallerCase, EVIL, EVIL_BODY, get, post } from './case.ts';

const END = '\r\n\r\n';
const second = (name: string, first: string, method: string): CallerCase => ({
  name,
  wire: first,
  rest: EVIL,
  allowed: { served: { method }, cut: true, second: true },
});

export const CONNECTIONS: readonly CallerCase[] = [
  second('pipelining GET and GET', `${get('X: y')}${END}`, 'GET'),
  second('pipelining POST and GET', post('Content-Length: 5', 'hello'), 'POST'),
  second('pipelining DELETE and GET', `${get('X: y').replace('GET', 'DELETE')}${END}`, 'DELETE'),
  {
    name: 'pipelining after Connection: close',
    wire: `${get('Connection: close')}${END}`,
    rest: EVIL,
    allowed: { served: { method: 'GET' }, cut: true },
  },
  {
    name: 'Expect: 100-continue and a body that comes at once',
    wire: post('Expect: 100-continue\r\nContent-Length: 5', 'hello'),
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'Expect: 100-continue twice',
    wire: post('Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5', 'hello'),
    allowed: { served: { body: 'hello' }, refused: [417, 400] },
  },
  {
    name: 'an unknown Expect',
    wire: post('Expect: 200-ok\r\nContent-Length: 5', 'hello'),
    allowed: { served: { body: 'hello' }, refused: [417, 400] },
  },
  {
    name: 'Expect: 100-continue without a body',
    wire: `${get('Expect: 100-continue')}${END}`,
    allowed: { served: { method: 'GET' } },
  },
  {
    name: 'Expect: 100-continue, then another request instead of the body',
    wire: post('Expect: 100-continue\r\nContent-Length: {evil-length}', EVIL_BODY),
    allowed: { served: { body: EVIL_BODY } },
  },
  {
    name: 'an upgrade to WebSocket',
    wire: `${get('Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==')}${END}`,
    allowed: { refused: [426] },
  },
  {
    name: 'an upgrade to h2c, with a second request where the preface would be',
    wire: `${get('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA')}${END}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
    allowed: { cut: true, refused: [426, 505] },
  },
  {
    name: 'a body in single octets',
    wire: [post('Content-Length: 5'), ...'hello'],
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'chunks in single octets',
    wire: [post('Transfer-Encoding: chunked'), ...'5\r\nhello\r\n0\r\n\r\n'],
    allowed: { served: { body: 'hello' } },
  },
  {
    name: 'a chunk size in two pieces',
    wire: [post('Transfer-Encoding: chunked', '1'), '0\r\n0123456789abcdef\r\n0\r\n\r\n'],
    allowed: { served: { body: '0123456789abcdef' } },
  },
  {
    name: 'a head and the first octet of its body',
    wire: [post('Content-Length: 5', 'h'), 'ello'],
    allowed: { served: { body: 'hello' } },
  },
];
