import { describe, expect, test, vi } from 'vitest';
import type { CallerEvents, CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import { ByteBudget } from '../../src/mcp/byte-budget.ts';
import { ANSWER_BOUNDS, Visit } from '../../src/mcp/visit.ts';

const RATE = { limit: 60, remaining: 0, resetSeconds: 1 };
const NOBODY = new AbortController().signal;

/** A visit whose caller has sent these pieces of a message. */
function visitWith(pieces: readonly string[], budget: ByteBudget) {
  const respond = vi.fn<CallerStream['respond']>();
  let events: CallerEvents | null = null;
  const stream = {
    respond,
    attach: (its: CallerEvents) => {
      events = its;
      for (const [i, piece] of pieces.entries()) its.onCallerBody(Buffer.from(piece), i === pieces.length - 1);
    },
  } as unknown as CallerStream;
  const visit = new Visit({ bodyLength: -1 } as RequestHead, stream, null, 'id', budget);
  return { visit, respond, leave: () => events?.onCallerGone() };
}

/** How many bytes are left: whatever more is reserved fails. */
function left(budget: ByteBudget): number {
  let bytes = 0;
  while (budget.reserve(1)) bytes++;
  budget.release(bytes);
  return bytes;
}

describe('the memory of a request to /mcp', () => {
  test('is freed when a message is refused for lack of memory', async () => {
    const budget = new ByteBudget(10);
    const { visit, respond } = visitWith(['12345678', '90123'], budget);
    const refusal = await visit.readMessage().catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'unavailable', headers: { 'Retry-After': '1' } });
    expect(left(budget)).toBe(2);
    visit.refuse(refusal as Parameters<Visit['refuse']>[0], RATE);
    expect(respond.mock.calls[0]?.[0]).toBe(503);
    expect(left(budget)).toBe(10);
  });

  test('is freed when the caller leaves', async () => {
    const budget = new ByteBudget(10);
    const { visit, leave } = visitWith(['123', '456'], budget);
    expect((await visit.readMessage()).toString()).toBe('123456');
    expect(left(budget)).toBe(4);
    leave();
    expect(left(budget)).toBe(10);
    expect(visit.gone.aborted).toBe(true);
  });

  test('includes the parsed size of a message, which may be many times its length', async () => {
    const message = `[${'{},'.repeat(1_000)}{}]`;
    const refused = visitWith([message], new ByteBudget(20 * message.length));
    await expect(refused.visit.readMessage()).rejects.toMatchObject({ code: 'unavailable' });
    const budget = new ByteBudget(50 * message.length);
    const { visit, leave } = visitWith([message], budget);
    expect((await visit.readMessage()).toString()).toBe(message);
    expect(left(budget)).toBeLessThan(28 * message.length);
    leave();
    expect(left(budget)).toBe(50 * message.length);
  });

  test('is freed when a message that does not end is refused after 30 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const budget = new ByteBudget(10);
    const attach = (its: CallerEvents): void => its.onCallerBody(Buffer.from('123'), false);
    const stream = { attach, respond: vi.fn() } as unknown as CallerStream;
    const visit = new Visit({ bodyLength: -1 } as RequestHead, stream, null, 'id', budget);
    const refusal = visit.readMessage().catch((error: unknown) => error);
    vi.advanceTimersByTime(30_000);
    const error = await refusal;
    expect(error).toMatchObject({ code: 'body_too_slow', status: 408 });
    visit.refuse(error as Parameters<Visit['refuse']>[0], RATE);
    expect(left(budget)).toBe(10);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  test('includes only the request body and the answer while a call is under way, and no longer the message', async () => {
    const budget = new ByteBudget(ANSWER_BOUNDS.maxBytes + 1_000);
    const { visit, leave } = visitWith(['[1,2,3]'], budget);
    await visit.readMessage();
    const called = visit.call(
      () => null,
      { head: {} as RequestHead, body: Buffer.alloc(100) },
      NOBODY,
      () => {},
    );
    expect(left(budget)).toBe(900);
    leave();
    expect(await called).toMatchObject({ answer: { kind: 'left' } });
    expect(left(budget)).toBe(ANSWER_BOUNDS.maxBytes + 1_000);
  });

  test('is checked for the answer before a call begins, and a call does not begin if its caller has left', async () => {
    const start = vi.fn(() => null);
    const request = { head: {} as RequestHead, body: Buffer.alloc(0) };
    const { visit } = visitWith(['x'], new ByteBudget(ANSWER_BOUNDS.maxBytes - 1));
    await visit.readMessage();
    await expect(visit.call(start, request, NOBODY, () => {})).rejects.toMatchObject({ code: 'unavailable' });
    const { visit: gone, leave } = visitWith(['x'], new ByteBudget(ANSWER_BOUNDS.maxBytes + 1));
    await gone.readMessage();
    leave();
    expect(await gone.call(start, request, NOBODY, () => {})).toMatchObject({ answer: { kind: 'left' } });
    expect(start).not.toHaveBeenCalled();
  });

  test('is not used for a message whose declared length is too long, which is refused before any of it is read', async () => {
    const attach = vi.fn();
    const visit = new Visit(
      { bodyLength: 1_048_577 } as RequestHead,
      { attach } as never,
      null,
      'id',
      new ByteBudget(10),
    );
    await expect(visit.readMessage()).rejects.toMatchObject({ code: 'payload_too_large' });
    expect(attach).not.toHaveBeenCalled();
  });
});
