import { beforeEach, describe, expect, it } from 'vitest';
import type { CallerEvents, CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import type { Gate } from '../../src/gate/gate.ts';
import { Api } from '../../src/http/api.ts';
import { PagePermits, permitsFor } from '../../src/http/page-permits.ts';
import { BodyInPieces, type Route } from '../../src/http/route.ts';
import { QUIET } from '../support/store.ts';
import { until } from '../support/wait.ts';

/** @returns how a response with this body is sent, and how many bytes it declares */
async function leavesAs(body: string): Promise<[how: string, bytes: number]> {
  const route: Route = {
    method: 'GET',
    path: '/page',
    summary: 'A page',
    access: 'anyone',
    unmetered: true,
    responses: {},
    handle: async () => ({ status: 200, body }),
  };
  const api = new Api({
    gate: { limitOf: () => 60 } as unknown as Gate,
    permits: new PagePermits(permitsFor(10)),
    routes: [route],
    log: QUIET,
  });
  const head = { method: 'GET', path: '/page', headers: [], bodyLength: 0, fault: null } as unknown as RequestHead;
  let left: [string, number] = ['not at all', 0];
  const stream = {
    address: '192.0.2.1',
    attach() {},
    respond: (_status: number, _lines: string, sent: string) => {
      left = ['whole', Buffer.byteLength(sent)];
    },
    begin: (_status: number, _lines: string, _isAscii: boolean, contentLength: number) => {
      left = ['as it is read', contentLength];
    },
    write: () => true,
    end() {},
  } as unknown as CallerStream;
  await api.handle(head, stream);
  return left;
}

it('a response of 64 KiB or more, counted in bytes and not in characters, is sent at the speed of its reader', async () => {
  expect(await leavesAs('x'.repeat(65_535))).toEqual(['whole', 65_535]);
  expect(await leavesAs('x'.repeat(65_536))).toEqual(['as it is read', 65_536]);
  expect(await leavesAs('\u4e2d'.repeat(30_000))).toEqual(['as it is read', 90_000]);
});

describe('a body in pieces', () => {
  /** Answers one request with these pieces. `write` says whether there is room for more. */
  function answer(pieces: AsyncIterable<Uint8Array>, write: () => boolean, method = 'GET', maxSendingMs = 10_000) {
    const events: string[] = [];
    let caller: CallerEvents | null = null;
    const stream = {
      attach: (attached: CallerEvents) => {
        caller = attached;
      },
      begin: (_status: number, _lines: string, _isAscii: boolean, length: number, hasBody: boolean) =>
        events.push(`begin ${length} ${hasBody}`),
      write: (piece: Uint8Array) => {
        events.push(Buffer.from(piece).toString());
        return write();
      },
      end: () => events.push('end'),
      abort: () => events.push('abort'),
    } as unknown as CallerStream;
    const route: Route = {
      method: 'GET',
      path: '/list',
      summary: 'A long list',
      access: 'anyone',
      unmetered: true,
      responses: {},
      handle: async () => ({ status: 200, body: new BodyInPieces(pieces) }),
    };
    const api = new Api({
      gate: { limitOf: () => 60 } as unknown as Gate,
      permits: new PagePermits(permitsFor(10)),
      routes: [route],
      log: QUIET,
      maxSendingMs,
    });
    const head = { method, path: '/list', headers: [], bodyLength: 0, fault: null } as unknown as RequestHead;
    return { events, done: api.handle(head, stream), caller: () => caller as CallerEvents | null };
  }
  let made: number;
  async function* threePieces() {
    for (const piece of ['a', 'b', 'c']) {
      made++;
      yield Buffer.from(piece);
    }
  }
  beforeEach(() => {
    made = 0;
  });

  it('is produced at the speed of its reader', async () => {
    const { events, done, caller } = answer(threePieces(), () => false);
    for (const expected of [1, 2, 3]) {
      await until(() => made === expected);
      await new Promise(setImmediate);
      expect([made, events.length]).toEqual([expected, expected + 1]);
      caller()?.onCallerWritable();
    }
    await done;
    expect(events).toEqual(['begin -1 true', 'a', 'b', 'c', 'end']);
  });

  it('is no longer produced for a caller that has left, and not at all for HEAD', async () => {
    const left = answer(threePieces(), () => false);
    await until(() => made === 1);
    left.caller()?.onCallerGone();
    await left.done;
    expect([made, left.events]).toEqual([1, ['begin -1 true', 'a']]);
    const head = answer(threePieces(), () => true, 'HEAD');
    await head.done;
    expect([made, head.events]).toEqual([1, ['begin -1 false', 'end']]);
  });

  it('is cut and forgotten when it was not sent in time', async () => {
    const { events, done } = answer(threePieces(), () => false, 'GET', 50);
    await done;
    expect([made, events]).toEqual([1, ['begin -1 true', 'a', 'abort']]);
  });

  it('is cut when it fails, so that nobody takes it for complete', async () => {
    async function* failing() {
      yield Buffer.from('a');
      throw new Error('failed on purpose');
    }
    const { events, done } = answer(failing(), () => true);
    await done;
    expect(events).toEqual(['begin -1 true', 'a', 'abort']);
  });
});

it('bodies that wait for a permit are bounded in bytes, and no longer count when they are handled', async () => {
  const LONG = 2_097_152;
  const ends: (() => void)[] = [];
  const route: Route = {
    method: 'POST',
    path: '/long',
    summary: 'A long body',
    access: 'anyone',
    rawBody: ['application/octet-stream'],
    maxBodyBytes: LONG,
    responses: {},
    handle: () => new Promise((resolve) => ends.push(() => resolve({ status: 200, body: 'done' }))),
  };
  const gate = {
    limitOf: () => 60,
    identify: async () => null,
    take: (_who: unknown, done: (passage: unknown) => void) =>
      done({ rate: { limit: 60, remaining: 1, resetSeconds: 1 }, refusal: null }),
  } as unknown as Gate;
  const api = new Api({ gate, permits: new PagePermits({ permits: 1, permitsOfOne: 1 }), routes: [route], log: QUIET });
  const head = { method: 'POST', path: '/long', headers: [], bodyLength: LONG, fault: null } as unknown as RequestHead;
  const statuses: number[] = [];
  const body = Buffer.alloc(LONG);
  const send = (): Promise<void> =>
    api.handle(head, {
      address: '192.0.2.1',
      aborted: false,
      attach: (events: CallerEvents) => events.onCallerBody(body, true),
      respond: (status: number) => statuses.push(status),
    } as unknown as CallerStream);
  // 32 of the longest bodies are 64 MiB.
  const sent = Array.from({ length: 34 }, send);
  await until(() => statuses.length === 2);
  expect(statuses).toEqual([503, 503]);
  for (let i = 0; i < 32; i++) {
    await until(() => ends.length === i + 1);
    ends[i]?.();
  }
  await Promise.all(sent);
  const next = send();
  await until(() => ends.length === 33);
  ends[32]?.();
  await next;
  expect(statuses.slice(2)).toEqual(Array(33).fill(200));
});

it('an error is still answered, in JSON, if its page cannot be made', async () => {
  const api = new Api({
    gate: { limitOf: () => 60, identify: () => Promise.reject(new Error('made up')) } as unknown as Gate,
    permits: new PagePermits(permitsFor(10)),
    routes: [],
    log: QUIET,
    errorPage: () => {
      throw new Error('no page');
    },
  });
  const answered: [status: number, body: string][] = [];
  const stream = {
    address: '192.0.2.1',
    respond: (status: number, _lines: string, body: string) => answered.push([status, body]),
  } as unknown as CallerStream;
  await api.handle(
    { method: 'GET', path: '/x', headers: [], bodyLength: 0, fault: null } as unknown as RequestHead,
    stream,
  );
  expect(answered).toMatchObject([[500, expect.stringContaining('"internal"')]]);
});
