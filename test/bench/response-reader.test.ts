import { describe, expect, it } from 'vitest';
import { ResponseReader } from '../../bench/load/response-reader.mjs';

const withLength = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello';
const chunked = 'HTTP/1.1 429 Slow\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
const empty = 'HTTP/1.1 204 No Content\r\n\r\n';

function statusesOf(parts: readonly string[]): number[] {
  const statuses: number[] = [];
  const reader = new ResponseReader((status) => statuses.push(status));
  for (const part of parts) reader.push(Buffer.from(part));
  return statuses;
}

describe('the end of a response', () => {
  it.each([
    ['with a length', withLength, 200],
    ['in chunks', chunked, 429],
    ['without a body', empty, 204],
  ])('%s is found wherever the network cuts the response', (_name, text, status) => {
    for (let cut = 1; cut < text.length; cut++) {
      expect(statusesOf([text.slice(0, cut), text.slice(cut), withLength])).toEqual([status, 200]);
    }
    expect(statusesOf([...text])).toEqual([status]);
  });

  it('is not found inside a body of known length that contains what looks like the last chunk', () => {
    const text = 'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n0\r\n\r\n0\r\n\r\n..';
    expect(statusesOf([text.slice(0, -1)])).toEqual([]);
    expect(statusesOf([text])).toEqual([200]);
  });
});
