import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BodyReader, MAX_SHOWN, readable } from '../../web/src/calls/body.ts';
import { eventsIn } from '../../web/src/calls/event-stream.ts';
import { afterRecord, finalCostOf } from '../../web/src/calls/final-cost.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
function read(type: string, ...pieces: (string | Uint8Array)[]) {
  const reader = new BodyReader(type);
  for (const piece of pieces) reader.take(typeof piece === 'string' ? bytes(piece) : piece);
  return reader.end();
}

describe('JSON over several lines', () => {
  it('keeps numbers and strings exactly as they were received', () => {
    expect(readable('{"a":12345678901234567890,"b":[ ],"c":[1.50,"x, {\\"y\\": ]"],"d":{}}')).toBe(
      '{\n  "a": 12345678901234567890,\n  "b": [],\n  "c": [\n    1.50,\n    "x, {\\"y\\": ]"\n  ],\n  "d": {}\n}',
    );
    for (const text of ['plain', '"text"', '12', '{"a":', '']) expect(readable(text)).toBe(text);
  });

  it('keeps its meaning', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(readable(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe('a body that is read', () => {
  it('is text if its type or its first piece says so; otherwise its bytes are only counted', () => {
    expect(read('application/problem+json', '{"a":1}')).toMatchObject({
      kind: 'text',
      text: '{\n  "a": 1\n}',
      bytes: 7,
    });
    expect(read('', 'plain')).toMatchObject({ kind: 'text', text: 'plain' });
    expect(read('application/octet-stream', new Uint8Array([0, 1, 255]))).toMatchObject({ kind: 'binary', bytes: 3 });
    expect(read('image/svg+xml', '<svg/>')).toMatchObject({ kind: 'binary', text: '' });
    expect(read('text/html', '<img src=x>')).toMatchObject({ kind: 'text', text: '<img src=x>' });
  });

  it('is shown up to a bound, and only counted beyond that bound', () => {
    const shown = read('text/plain', 'x'.repeat(MAX_SHOWN - 1), 'yz', 'more');
    expect(shown).toMatchObject({ isCut: true, bytes: MAX_SHOWN + 5 });
    expect(shown.text).toHaveLength(MAX_SHOWN);
  });

  it('gives the same text and events wherever it is split', () => {
    const text = ': hello\n\nevent: tick\r\nid: 1\r\ndata: {"n":1}\r\n\r\ndata: a\ndata: 😀\n\ndata\n\ndata: last';
    const whole = read('text/event-stream; charset=utf-8', text);
    expect(whole.kind).toBe('events');
    expect(whole.events).toEqual([
      { name: 'tick', id: '1', data: '{"n":1}' },
      { name: '', id: '', data: 'a\n😀' },
      { name: '', id: '', data: '' },
      { name: '', id: '', data: 'last' },
    ]);
    const raw = bytes(text);
    fc.assert(
      fc.property(fc.array(fc.nat(raw.length), { maxLength: 8 }), (cuts) => {
        const ends = [...new Set([0, ...cuts, raw.length])].sort((a, b) => a - b);
        const pieces = ends.slice(1).map((end, i) => raw.slice(ends[i], end));
        expect(read('text/event-stream', ...pieces)).toEqual({ ...whole, mediaType: 'text/event-stream' });
      }),
    );
  });
});

it('events are read correctly however the network splits them', async () => {
  const text = new TextEncoder().encode(
    'event: traffic\ndata: {"a":"ä"}\n\n: a comment\n\nevent: unavailable\ndata: {}\n\n',
  );
  for (const size of [1, 2, 7, 1_000]) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, n) =>
      text.slice(n * size, (n + 1) * size),
    );
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        controller.close();
      },
    });
    const seen: string[] = [];
    for await (const { name, data } of eventsIn(body)) seen.push(`${name} ${data}`);
    expect(seen).toEqual(['traffic {"a":"ä"}', 'unavailable {}']);
  }
});

describe('the final cost of a call priced by use', () => {
  const usage = { usage_id: 'u-1', amount: 0.0123, free_tier: false, balance: 0.9877 };
  const state = {
    phase: 'done' as const,
    ms: 1,
    response: {
      status: 200,
      headers: [] as [string, string][],
      amount: '0.05',
      isHeld: true,
      balance: '0.95',
      isFreeTier: false,
      freeLeft: null,
      usageId: 'u-1',
      retryAfter: null,
    },
    body: read('text/event-stream', `data: x\n\nevent: acf.usage\ndata: ${JSON.stringify(usage)}\n\n`),
  };
  const { response } = state;

  it('is in the response head if that cost is final, and otherwise in the last event of a complete stream', () => {
    expect(finalCostOf({ ...state, response: { ...response, isHeld: false } })).toEqual({
      amount: 0.05,
      balance: 0.95,
    });
    expect(finalCostOf(state)).toEqual({ amount: 0.0123, balance: 0.9877 });
  });

  it('is never what the service claims', () => {
    expect(finalCostOf({ ...state, phase: 'receiving' })).toBe(null);
    expect(finalCostOf({ ...state, phase: 'broken' })).toBe(null);
    expect(finalCostOf({ ...state, response: { ...response, headers: [['content-length', '9']] } })).toBe(null);
    expect(finalCostOf({ ...state, response: { ...response, usageId: 'u-2' } })).toBe(null);
    for (const data of ['', '{', 'null', '{"usage_id":"u-1"}']) {
      const body = read('text/event-stream', `event: acf.usage\ndata: ${data}\n\n`);
      expect(finalCostOf({ ...state, body })).toBe(null);
    }
  });

  it('is otherwise in the record, and the rest of the hold is returned', () => {
    expect(afterRecord(state, 0.0123)).toEqual({ amount: 0.0123, balance: 0.9877 });
    expect(afterRecord({ response: { ...response, balance: null } }, 0.0123)).toEqual({
      amount: 0.0123,
      balance: null,
    });
  });
});
