import { CHUNKED, HEAD, MALFORMED_BODIES, MALFORMED_HEADS } from '../../upstream/malformed-responses.ts';
import { CUT, FAILED, type ServiceCase, SLOW } from './case.ts';

const OK = `${HEAD}Content-Length: 2\r\n\r\nok`;
const paid = (body: string) => ({ status: 200, body, money: 'completed' }) as const;
const headers = (count: number, length: number): string =>
  Array.from({ length: count }, (_, i) => `X${i}: ${'y'.repeat(length)}\r\n`).join('');

/** Most of these exceed the upstream parser's bound on a head, 64 KiB. */
const BOMBS: readonly ServiceCase[] = [
  { name: 'a header of 100 000 octets', says: `${HEAD}X: ${'y'.repeat(100_000)}\r\n\r\n`, ends: 'stay', sees: FAILED },
  { name: 'a name of 100 000 octets', says: `${HEAD}${'x'.repeat(100_000)}: y\r\n\r\n`, ends: 'stay', sees: FAILED },
  { name: '20 000 headers', says: `${HEAD}${headers(20_000, 1)}\r\n`, ends: 'stay', sees: FAILED },
  {
    name: 'a reason of 100 000 octets',
    says: `HTTP/1.1 200 ${'x'.repeat(100_000)}\r\n\r\n`,
    ends: 'stay',
    sees: FAILED,
  },
  {
    name: 'endless interim responses',
    says: 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(5_000),
    ends: 'stay',
    sees: FAILED,
  },
  {
    name: 'interim heads that add up',
    says: `HTTP/1.1 103 x\r\nX: ${'y'.repeat(9_000)}\r\n\r\n`.repeat(9),
    ends: 'stay',
    sees: FAILED,
  },
  { name: 'a head that never ends', says: `${HEAD}X: y\r\n`, ends: 'stay', sees: SLOW },
  {
    name: 'a few thousand headers within the bound',
    says: `${HEAD}${headers(3_000, 1)}Content-Length: 2\r\n\r\nok`,
    ends: 'stay',
    sees: paid('ok'),
  },
  { name: 'endless trailers', says: `${CHUNKED}2\r\nok\r\n0\r\n${headers(20_000, 1)}\r\n`, ends: 'stay', sees: CUT },
  {
    name: 'endless chunk extensions',
    says: `${CHUNKED}2;${'a'.repeat(100_000)}\r\nok\r\n0\r\n\r\n`,
    ends: 'stay',
    sees: FAILED,
  },
  {
    name: 'a body of 200 000 chunks of one octet',
    says: `${CHUNKED}${'1\r\nx\r\n'.repeat(200_000)}0\r\n\r\n`,
    ends: 'stay',
    sees: { status: 200, bodyBytes: 200_000, money: 'completed' },
  },
];

const LENGTHS: readonly ServiceCase[] = [
  { name: 'more than its length: nobody gets the rest', says: `${OK}${OK}`, ends: 'stay', sees: paid('ok') },
  { name: 'more than its chunks', says: `${CHUNKED}2\r\nok\r\n0\r\n\r\n${OK}`, ends: 'stay', sees: paid('ok') },
  { name: 'less than its length', says: `${HEAD}Content-Length: 5\r\n\r\nok`, ends: 'close', sees: CUT },
  { name: 'less than its length, and resets', says: `${HEAD}Content-Length: 5\r\n\r\nok`, ends: 'reset', sees: CUT },
  { name: 'less than its length, and stays', says: `${HEAD}Content-Length: 5\r\n\r\nok`, ends: 'stay', sees: CUT },
  { name: 'no last chunk', says: `${CHUNKED}2\r\nok\r\n`, ends: 'close', sees: CUT },
  { name: 'half a chunk', says: `${CHUNKED}5\r\nok`, ends: 'close', sees: CUT },
  // Not with a reset: libuv reports a reset that arrives together with the last data (POLLHUP) as an ordinary end.
  { name: 'no length, to the end', says: `${HEAD}\r\nok`, ends: 'close', sees: paid('ok') },
  {
    name: 'a body on a 204',
    says: `HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nok`,
    ends: 'stay',
    sees: { status: 204, body: '', money: 'completed' },
  },
  {
    name: 'a body on a 304',
    says: `HTTP/1.1 304 Not\r\nContent-Length: 2\r\n\r\nok`,
    ends: 'stay',
    sees: { status: 304, body: '', money: 'completed' },
  },
  {
    name: 'a body to HEAD',
    method: 'HEAD',
    says: OK,
    ends: 'stay',
    sees: { status: 200, body: '', money: 'completed' },
  },
  {
    name: 'chunks to HEAD',
    method: 'HEAD',
    says: `${CHUNKED}2\r\nok\r\n0\r\n\r\n`,
    ends: 'stay',
    sees: { status: 200, body: '', money: 'completed' },
  },
  {
    name: 'a length on an interim response',
    says: `HTTP/1.1 100 Go\r\nContent-Length: 2\r\n\r\n${OK}`,
    ends: 'stay',
    sees: paid('ok'),
  },
];

const STAGES: readonly ServiceCase[] = [
  { name: 'nothing, and closes', says: '', ends: 'close', sees: FAILED },
  { name: 'nothing, and resets', says: '', ends: 'reset', sees: FAILED },
  { name: 'nothing, and stays', says: '', ends: 'stay', sees: SLOW },
  { name: 'half a status line, and resets', says: 'HTTP/1.1 2', ends: 'reset', sees: FAILED },
  { name: 'half a head, and resets', says: `${HEAD}Content-`, ends: 'reset', sees: FAILED },
  { name: 'an interim response, and closes', says: 'HTTP/1.1 100 Continue\r\n\r\n', ends: 'close', sees: FAILED },
  { name: 'a head, and resets', says: `${HEAD}Content-Length: 5\r\n\r\n`, ends: 'reset', sees: FAILED },
  { name: 'a head, and stays', says: `${HEAD}Content-Length: 5\r\n\r\n`, ends: 'stay', sees: SLOW },
  {
    name: '101',
    says: 'HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
    ends: 'stay',
    sees: FAILED,
  },
  {
    name: 'a 500',
    says: 'HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno',
    ends: 'stay',
    sees: { status: 500, body: 'no', money: 'refunded:upstream_5xx' },
  },
  { name: 'an answer before the body was sent', method: 'POST', early: true, says: OK, ends: 'stay', sees: paid('ok') },
  {
    name: 'a refusal before the body was sent, and closes',
    method: 'POST',
    early: true,
    says: 'HTTP/1.1 413 Big\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno',
    ends: 'close',
    sees: { status: 413, body: 'no', money: 'completed' },
  },
  {
    name: 'nonsense before the body was sent',
    method: 'POST',
    early: true,
    says: 'nonsense\r\n\r\n',
    ends: 'stay',
    sees: FAILED,
  },
  { name: 'a reset before the body was sent', method: 'POST', early: true, says: '', ends: 'reset', sees: FAILED },
];

const FORGERIES: readonly ServiceCase[] = [
  {
    name: 'headers that only the gateway may write',
    says: `${HEAD}X-ACF-Amount: 0\r\nX-ACF-Balance: 9\r\nx-ratelimit-limit: 9\r\nRateLimit: 9\r\nX-Request-Id: 9\r\nSet-Cookie: a=b\r\nAlt-Svc: x\r\nContent-Length: 2\r\n\r\nok`,
    ends: 'stay',
    sees: {
      ...paid('ok'),
      headers: { 'x-acf-amount': '0.000001', ratelimit: null, 'set-cookie': null, 'alt-svc': null },
    },
  },
  {
    name: 'a header that Connection names',
    says: `${HEAD}Connection: keep-alive, x-secret\r\nX-Secret: y\r\nContent-Length: 2\r\n\r\nok`,
    ends: 'stay',
    sees: { ...paid('ok'), headers: { 'x-secret': null } },
  },
];

/** Each answer with one fault. Bytes before the fault may reach the caller, but never a response that looks complete. */
const MALFORMED: readonly ServiceCase[] = [
  ...MALFORMED_HEADS.map(([name, says]): ServiceCase => ({ name, says, ends: 'close', sees: FAILED })),
  ...MALFORMED_BODIES.map(([name, says]): ServiceCase => ({ name, says, ends: 'close', sees: CUT })),
];

export const SERVICE_CORPUS: readonly { readonly name: string; readonly cases: readonly ServiceCase[] }[] = [
  { name: 'bombs', cases: BOMBS },
  { name: 'lies about length', cases: LENGTHS },
  { name: 'ends at each stage', cases: STAGES },
  { name: 'forgeries', cases: FORGERIES },
  { name: 'malformed', cases: MALFORMED },
];
