import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { CallerEvents, CallerStream } from '../../src/gate/caller-io.ts';
import { BodyBytes, readBody } from '../../src/http/body.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function memory(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('a body that comes byte by byte takes memory for its bytes, and not for its pieces', async () => {
  const bytes = 300_000;
  let events = {} as CallerEvents;
  const stream = { attach: (its: CallerEvents) => (events = its) } as unknown as CallerStream;
  const read = readBody(stream, bytes);
  const piece = Buffer.from('a');
  const before = memory();
  for (let i = 1; i < bytes; i++) events.onCallerBody(piece, false);
  expect(memory() - before).toBeLessThan(5_000_000);
  events.onCallerBody(piece, true);
  expect((await read)?.equals(Buffer.alloc(bytes, 'a'))).toBe(true);
});

test('a body has exactly the bytes of its pieces, and keeps them when the pieces are overwritten', () => {
  const body = new BodyBytes();
  const piece = Buffer.alloc(1_000);
  const sent: Buffer[] = [];
  for (let i = 0; i < 50; i++) {
    const part = piece.subarray(0, (i * 37) % 1_000).fill(i);
    sent.push(Buffer.from(part));
    body.add(part);
  }
  expect(body.all).toEqual(Buffer.concat(sent));
  expect(body.length).toBe(body.all.length);
});
