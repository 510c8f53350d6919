import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { rateState, UNITS_PER_REQUEST } from '../../src/admission/codes.ts';
import { commonHeaderLines, rateLimitedError, renderError } from '../../src/gate/answer.ts';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import type { Gate } from '../../src/gate/gate.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { McpEndpoint } from '../../src/mcp/endpoint.ts';
import type { StartCall } from '../../src/mcp/visit.ts';
import { until } from '../support/wait.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const LIMIT = 20;
const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'call_service',
    arguments: { service_id: '01890a5d-ac96-774b-bcce-b302099a8057', method: 'GET', path: '/' },
  },
};

afterEach(() => {
  vi.useRealTimers();
});

/** An endpoint with one key, whose calls are all refused because its bucket has the given share of a token. */
function endpointWith(tokens: number) {
  const key = { keyId: 'k', rateLimit: LIMIT, accountStatus: 'active' } as KeyRecord;
  const rate = rateState(LIMIT, tokens * UNITS_PER_REQUEST);
  const take = vi.fn<Gate['take']>((_who, done) => done({ rate, refusal: null }));
  const startCall: StartCall = (_head, caller) => {
    const { lines, body } = renderError(rateLimitedError(rate.retryAfterSeconds), commonHeaderLines(rate, 'id'));
    caller.respond(429, lines, body);
    return { rate, isRefunded: false, chargedMicros: 0, authorizedMicros: null };
  };
  const gate = { identify: () => key, limitOf: () => LIMIT, take } as unknown as Gate;
  const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
  const endpoint = new McpEndpoint({ gate, startCall, ask: vi.fn(), allowedOrigins: [], log });
  const call = async (): Promise<void> => {
    const body = Buffer.from(JSON.stringify(CALL));
    const headers = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream'];
    const head = { method: 'POST', headers, bodyLength: body.length, fault: null } as unknown as RequestHead;
    const end = vi.fn();
    const attach: CallerStream['attach'] = (events) => events.onCallerBody(body, true);
    const stream = { aborted: false, attach, begin: vi.fn(), write: () => true, respond: end, end };
    await endpoint.handle(head, stream as unknown as CallerStream);
    expect(end).toHaveBeenCalledOnce();
  };
  return { call, take, retryAfterSeconds: rate.retryAfterSeconds };
}

describe('a key whose call was refused for its rate limit', () => {
  test('takes only the token of its call, if it has waited as long as it was told', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    // 0.7 of a token are there, and one takes 3 s: the next is there in 0.9 s.
    const { call, take, retryAfterSeconds } = endpointWith(0.7);
    await call();
    expect([take.mock.calls.length, retryAfterSeconds]).toEqual([0, 1]);
    vi.advanceTimersByTime(1_000);
    await call();
    expect(take).not.toHaveBeenCalled();
  });

  test('takes a token before its message is read, if it returns before a token is available', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const { call, take } = endpointWith(0.7);
    await call();
    vi.advanceTimersByTime(800);
    await call();
    expect(take).toHaveBeenCalledOnce();
  });
});

test('the parsed arguments of a call are released while the call is under way: they may take 22 times their length', async () => {
  const calls = 10;
  let begun = 0;
  const key = { keyId: 'k', rateLimit: LIMIT, accountStatus: 'active' } as KeyRecord;
  const gate = { identify: () => key, limitOf: () => LIMIT } as unknown as Gate;
  const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn(), fatal: vi.fn() };
  const startCall = (): null => {
    begun++;
    return null;
  };
  const endpoint = new McpEndpoint({ gate, startCall, ask: vi.fn(), allowedOrigins: [], log });
  const { params } = CALL;
  const call = { ...CALL, params: { ...params, arguments: { ...params.arguments, method: 'POST', body: 'BODY' } } };
  const message = Buffer.from(JSON.stringify(call).replace('"BODY"', `[${'{},'.repeat(100_000)}{}]`));
  const headers = ['content-type', 'application/json', 'accept', 'application/json, text/event-stream'];
  const head = { method: 'POST', headers, bodyLength: message.length, fault: null } as unknown as RequestHead;
  const callers: Parameters<CallerStream['attach']>[0][] = [];
  const attach: CallerStream['attach'] = (events) => {
    callers.push(events);
    events.onCallerBody(message, true);
  };
  const stream = { aborted: false, attach, respond: vi.fn(), abort: vi.fn() } as unknown as CallerStream;
  const before = heapUsed();
  const handled = Array.from({ length: calls }, () => endpoint.handle(head, stream));
  await until(() => begun === calls);
  // One call's arguments take 6 MB.
  expect(heapUsed() - before).toBeLessThan(15_000_000);
  // Otherwise they would go on after this file, and fail in another.
  for (const caller of callers) caller.onCallerGone();
  await Promise.all(handled);
});
