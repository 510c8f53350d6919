import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CallerEvents } from '../../src/gate/caller-io.ts';
import { InProcessCaller } from '../../src/mcp/in-process-caller.ts';
import { CLOCKS } from '../support/clocks.ts';

const BOUNDS = { maxBytes: 8, maxMs: 300, maxStreamMs: 45 };
const LINES = '\r\nX-RateLimit-Limit: 60\r\nX-RateLimit-Remaining: 59\r\nX-RateLimit-Reset: 1\r\nX-ACF-Amount: 0.1';

/** The next turn of the event loop, in which the call hears that its caller is gone. */
const turn = () => new Promise(setImmediate);

function caller(body = '') {
  const events = {
    onCallerBody: vi.fn<CallerEvents['onCallerBody']>(),
    onCallerGone: vi.fn<() => void>(),
    onCallerWritable: vi.fn<() => void>(),
  };
  const outer = { address: '192.0.2.1', wasCut: false };
  return { caller: new InProcessCaller(outer, Buffer.from(body), BOUNDS, () => {}), events };
}

describe('a caller in this process', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: [...CLOCKS] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('sends its body when the call is admitted, and reads the response to the end', async () => {
    const { caller: one, events } = caller('body');
    one.attach(events);
    expect(events.onCallerBody).toHaveBeenCalledExactlyOnceWith(Buffer.from('body'), true);
    one.begin(200, `${LINES}\r\ncontent-type: text/plain\r\nX-ACF-Amount: 7`);
    const buffer = Buffer.from('abcd');
    expect(one.write(buffer)).toBe(true);
    // The upstream client overwrites its buffer.
    buffer.fill('x');
    expect(one.write(Buffer.from('efgh'))).toBe(true);
    one.end();
    const answer = await one.answer;
    expect(answer).toMatchObject({ kind: 'response', status: 200, body: Buffer.from('abcdefgh'), cutBy: null });
    // The service cannot say what a call costs: the first value is the gateway's.
    expect(answer.kind === 'response' && answer.headers.get('x-acf-amount')).toBe('0.1');
    expect(one.rate).toEqual({ limit: 60, remaining: 59, resetSeconds: 1 });
    vi.runAllTimers();
    await turn();
    expect(events.onCallerGone).not.toHaveBeenCalled();
  });

  test('leaves with what it has received when the body is longer than allowed', async () => {
    const { caller: one, events } = caller();
    one.attach(events);
    one.begin(200, LINES);
    expect(one.write(Buffer.from('abcdefghi'))).toBe(false);
    expect(await one.answer).toMatchObject({ body: Buffer.from('abcdefgh'), cutBy: 'size' });
    vi.runAllTimers();
    await turn();
    expect(events.onCallerGone).toHaveBeenCalledOnce();
  });

  test.each([
    ['text/event-stream; charset=utf-8', BOUNDS.maxStreamMs],
    ['application/json', BOUNDS.maxMs],
  ])('leaves with what it has received when a body of %s has taken %i ms', async (mediaType, ms) => {
    const { caller: one, events } = caller();
    one.attach(events);
    one.begin(200, `${LINES}\r\nContent-Type: ${mediaType}`);
    one.write(Buffer.from('data: 1\n'));
    vi.advanceTimersByTime(ms - 1);
    expect(events.onCallerGone).not.toHaveBeenCalled();
    vi.advanceTimersByTime(2);
    expect(await one.answer).toMatchObject({ kind: 'response', body: Buffer.from('data: 1\n'), cutBy: 'time' });
    await turn();
    expect(events.onCallerGone).toHaveBeenCalledOnce();
  });

  test('counts as gone at the start of its call if it left before the call was admitted', async () => {
    const { caller: one, events } = caller('body');
    one.leave();
    expect(one.aborted).toBe(true);
    one.attach(events);
    expect(events.onCallerGone).toHaveBeenCalledOnce();
    expect(events.onCallerBody).not.toHaveBeenCalled();
    one.respond(503, LINES, '{}');
    expect(await one.answer).toEqual({ kind: 'left' });
  });

  test('delivers its body only once, even if another handler attaches later', () => {
    const { caller: one, events } = caller('body');
    const { events: later } = caller();
    one.attach(events);
    one.attach(later);
    expect(events.onCallerBody).toHaveBeenCalledOnce();
    expect(later.onCallerBody).not.toHaveBeenCalled();
    one.leave();
    expect(later.onCallerGone).toHaveBeenCalledOnce();
    expect(events.onCallerGone).not.toHaveBeenCalled();
  });

  test('reports a response that breaks off as broken', async () => {
    const { caller: one, events } = caller();
    one.attach(events);
    one.begin(200, LINES);
    one.write(Buffer.from('ab'));
    one.abort();
    expect(await one.answer).toMatchObject({ kind: 'broken', status: 200 });
    expect(vi.getTimerCount()).toBe(0);
  });
});
