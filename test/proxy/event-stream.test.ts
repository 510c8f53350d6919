import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EventStream, EventStreams, isEventStream } from '../../src/proxy/event-stream.ts';

const head = (headers: string[], more: object = {}) => ({
  status: 200,
  headers,
  isAscii: true,
  contentLength: -1,
  hasBody: true,
  framing: 'chunked' as const,
  ...more,
});
const TYPE = ['Content-Type', 'text/event-stream'];

describe('comments may be written into', () => {
  it.each([
    ['an event stream', head(TYPE)],
    ['one in any spelling, with parameters', head(['x', 'y', 'CONTENT-TYPE', 'Text/Event-Stream ; charset=utf-8'])],
    ['one with the identity coding', head([...TYPE, 'content-encoding', 'Identity'])],
    ['one of another 2xx', head(TYPE, { status: 206 })],
  ])('%s', (_name, its) => {
    expect(isEventStream(its)).toBe(true);
  });
});

describe('comments may not be written into', () => {
  it.each([
    ['another type', head(['Content-Type', 'text/event-streams'])],
    ['no type', head(['X-Powered-By', 'text/event-stream'])],
    ['two types', head([...TYPE, 'Content-Type', 'text/html'])],
    ['the same type twice', head([...TYPE, ...TYPE])],
    ['a compressed event stream', head([...TYPE, 'Content-Encoding', 'gzip'])],
    ['one that is compressed after identity', head([...TYPE, 'Content-Encoding', 'identity, br'])],
    ['one with a length', head(TYPE, { contentLength: 10 })],
    ['a response without a body', head(TYPE, { hasBody: false })],
    ['an error', head(TYPE, { status: 404 })],
    ['a redirect', head(TYPE, { status: 302 })],
  ])('%s', (_name, its) => {
    expect(isEventStream(its)).toBe(false);
  });
});

describe('the caller of an event stream', () => {
  let sent: string;
  let isStalled: boolean;
  let streams: EventStreams;
  const open = (): EventStream => {
    const send = (bytes: Uint8Array): void => {
      sent += Buffer.from(bytes).toString('latin1');
    };
    const call = {
      send,
      get isStalled(): boolean {
        return isStalled;
      },
    };
    return new EventStream(call, streams);
  };
  /** Passes bytes as the exchange does. */
  const pass = (stream: EventStream, bytes: string): void => {
    sent += stream.pass(Buffer.from(bytes, 'latin1')).toString('latin1');
  };
  /** The end of the event-loop turn in which the head came. */
  const endOfTurn = (): unknown => vi.advanceTimersByTime(0);
  const seconds = (count: number): unknown => vi.advanceTimersByTime(count * 1000);

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setImmediate', 'clearImmediate', 'setInterval', 'clearInterval'] });
    sent = '';
    isStalled = false;
    streams = new EventStreams();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('gets a comment with the head if no event comes in the same turn', () => {
    open();
    expect(sent).toBe('');
    endOfTurn();
    expect(sent).toBe(': \n');
  });

  it('gets no comment if an event comes with the head', () => {
    pass(open(), 'data: 1\n\n');
    endOfTurn();
    expect(sent).toBe('data: 1\n\n');
  });

  it('gets no comment, then or later, if the call ended first', () => {
    open().end();
    seconds(100);
    expect(sent).toBe('');
  });

  it('gets a comment after 15 s of silence, and another every 15 s after that', () => {
    const stream = open();
    pass(stream, 'data: 1\n\n');
    seconds(14);
    expect(sent).toBe('data: 1\n\n');
    seconds(1);
    expect(sent).toBe('data: 1\n\n: \n');
    seconds(30);
    expect(sent).toBe('data: 1\n\n: \n: \n: \n');
  });

  it('gets no comment while events come at least every 15 s', () => {
    const stream = open();
    for (let i = 0; i < 10; i++) {
      pass(stream, 'data: 1\n\n');
      seconds(14);
    }
    expect(sent).toBe('data: 1\n\n'.repeat(10));
  });

  it('gets no comment within an event', () => {
    const stream = open();
    pass(stream, 'data: 1\n');
    seconds(100);
    expect(sent).toBe('data: 1\n');
    pass(stream, '\n');
    seconds(15);
    expect(sent).toBe('data: 1\n\n: \n');
  });

  it('gets no comment while the caller does not read', () => {
    const stream = open();
    pass(stream, 'data: 1\n\n');
    isStalled = true;
    seconds(100);
    expect(sent).toBe('data: 1\n\n');
    isStalled = false;
    seconds(1);
    expect(sent).toBe('data: 1\n\n: \n');
  });

  it.each([
    ['in one piece', ['\xef\xbb\xbfdata: 1\n\n']],
    ['in pieces', ['\xef', '\xbb', '\xbfda', 'ta: 1\n\n']],
    ['alone', ['\xef\xbb\xbf', 'data: 1\n\n']],
  ])('never gets a byte order mark after a comment: %s', (_how, chunks) => {
    const stream = open();
    endOfTurn();
    for (const chunk of chunks) pass(stream, chunk);
    expect(sent).toBe(': \ndata: 1\n\n');
  });

  it.each([
    ['in one piece', ['\xef\xbb\xbfdata: 1\n\n']],
    ['in pieces', ['\xef', '\xbb', '\xbfda', 'ta: 1\n\n']],
  ])(
    'gets the byte order mark at the beginning of a stream, and no comment before the mark is complete: %s',
    (_how, chunks) => {
      const stream = open();
      for (const chunk of chunks) {
        pass(stream, chunk);
        if (chunk !== chunks.at(-1)) seconds(100);
      }
      expect(sent).toBe('\xef\xbb\xbfdata: 1\n\n');
      seconds(15);
      expect(sent).toBe('\xef\xbb\xbfdata: 1\n\n: \n');
    },
  );

  it.each([
    ['behind a comment', true, ': \n\xef\xbbdata: 1\n\n'],
    ['at the beginning', false, '\xef\xbbdata: 1\n\n'],
  ])('gets all bytes of a beginning that only resembles a byte order mark: %s', (_where, isLater, expected) => {
    const stream = open();
    if (isLater) endOfTurn();
    pass(stream, '\xef');
    pass(stream, '\xbbdata: 1\n\n');
    expect(sent).toBe(expected);
  });

  it('needs no timer once all streams have ended', () => {
    const both = [open(), open()];
    for (const stream of both) stream.end();
    seconds(1);
    expect(vi.getTimerCount()).toBe(0);
    pass(open(), 'data: 1\n\n');
    seconds(15);
    expect(sent).toBe('data: 1\n\n: \n');
  });
});
