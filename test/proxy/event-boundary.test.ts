import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventBoundary } from '../../src/proxy/event-boundary.ts';

const isBetweenEvents = (...chunks: string[]): boolean => {
  const boundary = new EventBoundary();
  for (const chunk of chunks) boundary.pass(Buffer.from(chunk));
  return boundary.isBetweenEvents;
};

/** Reads a whole stream as the HTML Standard says (section 9.2.6): all lines of each event that is dispatched. */
function eventsOf(stream: string): string[][] {
  const lines = stream.split(/\r\n|\r|\n/).slice(0, -1);
  const events: string[][] = [];
  let event: string[] = [];
  for (const line of lines) {
    if (line !== '' && !line.startsWith(':')) event.push(line);
    if (line !== '') continue;
    if (event.length > 0) events.push(event);
    event = [];
  }
  return events;
}

describe('a stream ends between two events', () => {
  it.each([
    ['before its first byte', []],
    ['after an event', ['data: 1\n\n']],
    ['after an event in pieces', ['da', 'ta: 1', '\n', '\n']],
    ['after an event with CRLF', ['data: 1\r\n\r\n']],
    ['after an event with CRLF in pieces', ['data: 1\r', '\n\r', '\n']],
    ['after an event with CR', ['data: 1\r\r']],
    ['after two events with CR', ['data: 1\r\r', 'data: 2\r', '\r']],
    ['after an event with mixed line ends', ['data: 1\r\n\n']],
    ['after an empty line', ['\n']],
    ['after a comment', [': hello\n']],
    ['after comments in pieces', [':', '\n', ': he', 'llo\r\n']],
    ['after an event and a comment', ['data: 1\n\n: hello\n']],
  ])('%s', (_when, chunks) => {
    expect(isBetweenEvents(...chunks)).toBe(true);
  });
});

describe('a stream does not end between two events', () => {
  it.each([
    ['within a line', ['data: 1']],
    ['after a line', ['data: 1\n']],
    ['within a comment', [': hel']],
    ['within a comment of an event', ['data: 1\n: hel']],
    ['after a comment of an event', ['data: 1\n: hello\n']],
    ['after a line without a colon', ['data\n']],
    ['after the CR of a CRLF', ['data: 1\r\n\r']],
    ['after the CR that may be of a CRLF', ['data: 1\r']],
    ['after the CRLF of a line', ['data: 1\r', '\n']],
    ['within the next event', ['data: 1\n\nid: 2\n']],
  ])('%s', (_when, chunks) => {
    expect(isBetweenEvents(...chunks)).toBe(false);
  });
});

it('comments at every position that counts as between two events change no event, however the stream is split', () => {
  const token = fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\n\r\n', ':', ': x', 'data: 1', 'id', 'é');
  const chunks = fc.array(fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('')));
  fc.assert(
    fc.property(chunks, (all) => {
      const boundary = new EventBoundary();
      let commented = '';
      for (const chunk of all) {
        if (boundary.isBetweenEvents) commented += ': \n';
        boundary.pass(Buffer.from(chunk));
        commented += chunk;
      }
      expect(eventsOf(commented)).toEqual(eventsOf(all.join('')));
    }),
  );
});

it('each complete event may be followed by a comment, if lines end with LF or CRLF', () => {
  const event = fc.array(fc.constantFrom('data: 1', ': x', 'id', 'event: \u00e9'), { minLength: 1 });
  fc.assert(
    fc.property(fc.array(event), fc.constantFrom('\n', '\r\n'), fc.integer({ min: 1, max: 9 }), (events, end, size) => {
      const boundary = new EventBoundary();
      for (const lines of events) {
        const bytes = Buffer.from(`${lines.join(end)}${end}${end}`);
        for (let at = 0; at < bytes.length; at += size) boundary.pass(bytes.subarray(at, at + size));
        expect(boundary.isBetweenEvents).toBe(true);
      }
    }),
  );
});
