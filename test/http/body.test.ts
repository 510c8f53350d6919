import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { BodyBytes } from '../../src/gate/body-bytes.ts';
import type { CallerEvents, CallerStream } from '../../src/gate/caller-io.ts';
import { BodyBudget, readBody } from '../../src/http/body.ts';

/** A request whose body arrives as the test says. */
class FakeStream {
  events: CallerEvents | null = null;
  attach(events: CallerEvents): void {
    this.events = events;
  }
  send(bytes: Uint8Array, last = false): void {
    this.events?.onCallerBody(bytes, last);
  }
}

const MIB = 1_048_576;
const begin = (budget: BodyBudget, maxBytes = 2 * MIB) => {
  const stream = new FakeStream();
  return { stream, body: readBody(stream as unknown as CallerStream, maxBytes, budget) };
};

it('bodies that arrive slowly take bounded memory in total, and short ones always have room', async () => {
  const budget = new BodyBudget({ freeBytes: 65_536, maxBytes: 4 * MIB, maxMs: 60_000 });
  const slow = [1, 2, 3, 4].map(() => begin(budget));
  for (const { stream } of slow) stream.send(new Uint8Array(MIB));
  const refused = begin(budget);
  refused.stream.send(new Uint8Array(MIB));
  expect(await refused.body).toBe('no_room');
  const short = begin(budget);
  short.stream.send(Buffer.from('{"a":'));
  short.stream.send(Buffer.from('1}'), true);
  expect(String(await short.body)).toBe('{"a":1}');
  // One is complete, too long, or its caller leaves: there is room again, once.
  slow[0]?.stream.events?.onCallerGone();
  slow[0]?.stream.events?.onCallerGone();
  const next = begin(budget);
  next.stream.send(new Uint8Array(MIB), true);
  expect(await next.body).toHaveLength(MIB);
  slow[1]?.stream.send(new Uint8Array(2 * MIB));
  expect(await slow[1]?.body).toBe('too_large');
  for (let n = 0; n < 2; n++) {
    const more = begin(budget, MIB);
    more.stream.send(new Uint8Array(MIB - 1));
    if (n === 0) more.stream.send(new Uint8Array(1), true);
    if (n === 0) expect(await more.body).toHaveLength(MIB);
  }
});

it('a body that takes too much time is refused, and its memory is freed', async () => {
  const budget = new BodyBudget({ freeBytes: 65_536, maxBytes: MIB, maxMs: 20 });
  const nothing = begin(budget);
  const short = begin(budget);
  short.stream.send(new Uint8Array(1_000));
  for (let n = 0; n < 3; n++) {
    const slow = begin(budget, MIB);
    slow.stream.send(new Uint8Array(100_000));
    expect(await slow.body).toBe('too_slow');
    slow.stream.send(new Uint8Array(1), true);
  }
  expect([await nothing.body, await short.body]).toEqual(['too_slow', 'too_slow']);
});

it('a body in chunks of one octet takes little more memory than its length', async () => {
  const gc = fullGc();
  const { stream, body } = begin(new BodyBudget({ freeBytes: 0, maxBytes: 2 * MIB, maxMs: 60_000 }), MIB);
  gc();
  const before = process.memoryUsage();
  for (let n = 0; n < MIB - 1; n++) stream.send(Uint8Array.of(n % 251));
  gc();
  const after = process.memoryUsage();
  expect(after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(8 * MIB);
  stream.send(Uint8Array.of(7), true);
  const bytes = (await body) as Buffer;
  expect(bytes).toHaveLength(MIB);
  expect([bytes[0], bytes[300], bytes[MIB - 1]]).toEqual([0, 49, 7]);
});

it('a body has exactly the bytes of its pieces, even after the pieces are overwritten', () => {
  const body = new BodyBytes(50_000);
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

function fullGc(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}
