import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ParseOptions, parse } from './parse.ts';

type Sample = {
  name: string;
  wire: string;
  body: string;
  status?: number;
  keepAlive?: boolean;
  contentLength?: number;
  hasBody?: boolean;
  options?: ParseOptions;
};

const SAMPLES: Sample[] = [
  {
    name: 'Content-Length',
    wire: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    body: 'hello',
    contentLength: 5,
  },
  {
    name: 'Content-Length 0',
    wire: 'HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n',
    body: '',
    contentLength: 0,
    hasBody: false,
  },
  { name: 'leading zeros', wire: 'HTTP/1.1 200 OK\r\nContent-Length: 002\r\n\r\nhi', body: 'hi', contentLength: 2 },
  {
    name: 'chunked',
    wire: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n00a\r\n0123456789\r\n0\r\n\r\n',
    body: 'abc0123456789',
  },
  {
    name: 'chunked with extensions',
    wire: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b;c="d e"\r\nhi\r\n0;z\r\n\r\n',
    body: 'hi',
  },
  {
    name: 'chunked with trailers',
    wire: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\nEmpty:\r\n\r\n',
    body: 'hi',
  },
  { name: 'chunked, empty', wire: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', body: '' },
  {
    name: 'close-delimited',
    wire: 'HTTP/1.1 200 OK\r\n\r\nuntil the end',
    body: 'until the end',
    keepAlive: false,
    options: { endOfInput: true },
  },
  {
    name: 'close-delimited, empty',
    wire: 'HTTP/1.1 200 OK\r\n\r\n',
    body: '',
    keepAlive: false,
    options: { endOfInput: true },
  },
  {
    name: 'HTTP/1.0',
    wire: 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    body: 'hi',
    contentLength: 2,
    keepAlive: false,
  },
  {
    name: 'HTTP/1.0 kept alive',
    wire: 'HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi',
    body: 'hi',
    contentLength: 2,
  },
  {
    name: 'Connection: close',
    wire: 'HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nhi',
    body: 'hi',
    contentLength: 2,
    keepAlive: false,
  },
  {
    name: 'close wins over keep-alive',
    wire: 'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
    body: '',
    contentLength: 0,
    hasBody: false,
    keepAlive: false,
  },
  {
    name: 'interim responses',
    wire: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi',
    body: 'hi',
    contentLength: 2,
  },
  { name: '204', wire: 'HTTP/1.1 204 No Content\r\n\r\n', body: '', status: 204, hasBody: false },
  {
    name: '304 with a length',
    wire: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    body: '',
    status: 304,
    contentLength: 5,
    hasBody: false,
  },
  {
    name: 'HEAD with a length',
    wire: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
    body: '',
    contentLength: 5,
    hasBody: false,
    options: { isHeadRequest: true },
  },
  {
    name: 'HEAD, chunked',
    wire: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    body: '',
    hasBody: false,
    options: { isHeadRequest: true },
  },
  {
    name: 'no reason phrase',
    wire: 'HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n',
    body: '',
    status: 404,
    contentLength: 0,
    hasBody: false,
  },
  {
    name: 'not even the space before it',
    wire: 'HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n',
    body: '',
    status: 404,
    contentLength: 0,
    hasBody: false,
  },
  {
    name: 'latin1 and tabs in values',
    wire: 'HTTP/1.1 200 \xd6k\r\nX: \t a\tb\xe9 \t\r\nContent-Length: 0\r\n\r\n',
    body: '',
    contentLength: 0,
    hasBody: false,
  },
];

function expectSample(sample: Sample, pieces: string[]): void {
  const parsed = parse(pieces, sample.options);
  expect(parsed).toMatchObject({ state: 'done', malformed: '', body: sample.body, surplus: 0 });
  expect(parsed.head).toMatchObject({
    status: sample.status ?? 200,
    keepAlive: sample.keepAlive ?? true,
    contentLength: sample.contentLength ?? -1,
    hasBody: sample.hasBody ?? true,
  });
}

describe('every framing is parsed identically however it is split', () => {
  test.each(SAMPLES)('$name', (sample) => {
    const { wire } = sample;
    expectSample(sample, [wire]);
    for (let at = 1; at < wire.length; at++) expectSample(sample, [wire.slice(0, at), wire.slice(at)]);
    expectSample(sample, [...wire]);
  });
});

describe('an incomplete response never counts as complete', () => {
  test.each(SAMPLES.filter(({ options }) => options?.endOfInput !== true))('$name', ({ wire, options }) => {
    for (let at = 0; at < wire.length; at++) {
      const parsed = parse([wire.slice(0, at)], { ...options, endOfInput: true });
      expect(parsed.state, JSON.stringify(wire.slice(0, at))).not.toBe('done');
      expect(parsed.malformed).toBe('');
    }
  });
});

test('header names and values arrive as they were sent, without surrounding whitespace', () => {
  const { head } = parse([
    'HTTP/1.1 200 OK\r\nX-A:  1 \r\nx-a:\r\nEt\xe4g'.replace(
      'Et\xe4g',
      'ETag: "\xe4:, b"\r\nContent-Length: 0\r\n\r\n',
    ),
  ]);
  expect(head?.headers).toEqual(['X-A', '1', 'x-a', '', 'ETag', '"\xe4:, b"', 'Content-Length', '0']);
});

describe('trailers', () => {
  const wire =
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: \t1:\xe9 \r\nEmpty:\r\nx-sum:2\r\n\r\n';

  test('are read if they are wanted, however the input is split', () => {
    const wanted = { wantsTrailers: true };
    const trailers = ['X-Sum', '1:\xe9', 'Empty', '', 'x-sum', '2'];
    for (let at = 0; at < wire.length; at++) {
      const parsed = parse([wire.slice(0, at), wire.slice(at)], wanted);
      expect(parsed).toMatchObject({ state: 'done', body: 'hi', trailers });
    }
    expect(parse([...wire], wanted).trailers).toEqual(trailers);
  });

  test('are dropped if they are not wanted, and do not exist without chunks', () => {
    expect(parse([wire]).trailers).toEqual([]);
    for (const { wire, options } of SAMPLES.filter(({ name }) => !name.includes('trailers'))) {
      expect(parse([wire], { ...options, wantsTrailers: true }).trailers).toEqual([]);
    }
  });

  test('have the same size limit as a head', () => {
    const long = wire.replace('Empty:', `Empty:${'x'.repeat(5_000)}`);
    expect(parse([long], { wantsTrailers: true }).malformed).toBe('trailers too large');
  });
});

test.each([
  ['timeout=5, max=100', 5],
  ['max=100, Timeout=7', 7],
  ['timeout=x', -1],
  ['xtimeout=5', -1],
])('the Keep-Alive hint %j means %d seconds', (value, seconds) => {
  const { head } = parse([`HTTP/1.1 200 OK\r\nKeep-Alive: ${value}\r\nContent-Length: 0\r\n\r\n`]);
  expect(head?.keepAliveSeconds).toBe(seconds);
});

test('octets after the end of a response are left over, not parsed', () => {
  for (const { wire, options } of SAMPLES.filter((sample) => sample.options?.endOfInput !== true)) {
    const parsed = parse([`${wire}HTTP/1.1 200 OK\r\n`], options);
    expect(parsed).toMatchObject({ state: 'done', surplus: 17 });
  }
});

test('a head longer than the first search window is still parsed', () => {
  const long = 'v'.repeat(3000);
  const wire = `HTTP/1.1 200 OK\r\nX-Long: ${long}\r\nContent-Length: 2\r\n\r\nhi`;
  expect(parse([wire])).toMatchObject({ state: 'done', body: 'hi' });
  expect(parse([wire]).head?.headers[1]).toBe(long);
});

const tokenChar = fc.constantFrom(..."abcXYZ019-_!#$%&'*+.^`|~");
const token = fc.array(tokenChar, { minLength: 1, maxLength: 12 }).map((chars) => `x${chars.join('')}`);
const value = fc
  .array(
    fc.integer({ min: 0x20, max: 0xff }).filter((octet) => octet !== 0x7f),
    { maxLength: 30 },
  )
  .map((octets) => String.fromCharCode(...octets).replace(/^[ \t]+|[ \t]+$/g, ''));
const fields = fc.array(fc.tuple(token, value), { maxLength: 6 });
const bodyChunk = fc
  .uint8Array({ minLength: 1, maxLength: 40 })
  .map((octets) => Buffer.from(octets).toString('latin1'));

function lines(pairs: [string, string][]): string {
  return pairs.map(([name, text]) => `${name}: ${text}\r\n`).join('');
}

test('any valid response, in any encoding and split anywhere, parses to the same result', () => {
  const response = fc.record({
    status: fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
    reason: value,
    interim: fc.array(fields, { maxLength: 2 }),
    headers: fields,
    chunks: fc.array(bodyChunk, { maxLength: 5 }),
    framing: fc.constantFrom('length', 'chunked', 'close'),
    extension: value,
    trailers: fields,
    cuts: fc.array(fc.nat(2000), { maxLength: 12 }),
  });
  fc.assert(
    fc.property(response, (r) => {
      const body = r.chunks.join('');
      const chunked = r.chunks.map((chunk) => `${chunk.length.toString(16)};${r.extension}\r\n${chunk}\r\n`).join('');
      const [framing, encoded] =
        r.framing === 'length'
          ? [`Content-Length: ${body.length}\r\n`, body]
          : r.framing === 'chunked'
            ? ['Transfer-Encoding: chunked\r\n', `${chunked}0\r\n${lines(r.trailers)}\r\n`]
            : ['', body];
      const interim = r.interim.map((pairs) => `HTTP/1.1 103 x\r\n${lines(pairs)}\r\n`).join('');
      const wire = `${interim}HTTP/1.1 ${r.status} ${r.reason}\r\n${lines(r.headers)}${framing}\r\n${encoded}`;
      const cuts = [...new Set([0, ...r.cuts.map((cut) => cut % wire.length), wire.length])].sort((a, b) => a - b);
      const pieces = cuts.slice(1).map((cut, i) => wire.slice(cuts[i], cut));
      const parsed = parse(pieces, { endOfInput: true, maxHeadBytes: 16_384 });
      expect(parsed).toMatchObject({ state: 'done', malformed: '', body, surplus: 0 });
      expect(parsed.head?.status).toBe(r.status);
      expect(parsed.head?.headers.slice(0, r.headers.length * 2)).toEqual(r.headers.flat());
    }),
    { numRuns: 500 },
  );
});
