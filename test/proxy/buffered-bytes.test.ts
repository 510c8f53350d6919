import { describe, expect, it } from 'vitest';
import type { Buyer } from '../../src/admission/buyer.ts';
import { CallTerms } from '../../src/admission/call-terms.ts';
import type { AdmissionListener, AdmitResult } from '../../src/admission/commands.ts';
import type { Listing } from '../../src/catalog/listing.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { Operator } from '../../src/platform/operator.ts';
import { Breakers } from '../../src/proxy/breakers.ts';
import { BufferedBytes } from '../../src/proxy/buffered-bytes.ts';
import { startExchange } from '../../src/proxy/exchange.ts';
import { type ExchangeOptions, newCounters } from '../../src/proxy/exchange-options.ts';
import type { UpstreamHandler } from '../../src/upstream/index.ts';
import { NO_OWNER } from '../support/store.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const head: RequestHead = {
  method: 'POST',
  path: `${PROXY_PREFIX}${ID}/`,
  query: undefined,
  headers: [],
  isAscii: true,
  authorization: undefined,
  bodyLength: 1000,
  fault: null,
};
const rate = { limit: 60, tokens: 59 * 60_000, remaining: 59, resetSeconds: 1, retryAfterSeconds: 0 };
const admitted: AdmitResult = {
  outcome: 'admitted',
  rate,
  amountMicros: 5,
  authorizedMicros: null,
  freeTier: false,
  freeLeft: null,
  balanceMicros: 10,
  owner: NO_OWNER,
};

/** An admitted call to a service that does not read its request body, which is about to arrive. */
function startCall(bufferedBytes: BufferedBytes) {
  const seen = { settled: [] as [refund: boolean, settlement: string][], aborted: false, destroyed: false };
  let events: CallerEvents | undefined;
  let handler: UpstreamHandler | undefined;
  const caller: CallerStream = {
    aborted: false,
    wasCut: false,
    address: '192.0.2.1',
    attach: (given) => {
      events = given;
    },
    pauseBody() {},
    resumeBody() {},
    respond() {},
    interim() {},
    begin() {},
    write: () => true,
    end() {},
    abort: () => {
      seen.aborted = true;
    },
  };
  const buyer = { keyId: 'key', accountId: 'account' } as Buyer;
  const key = {
    accountId: 'account',
    keyId: 'key',
    role: 'buyer',
    accountStatus: 'active',
    services: null,
    maxPriceMicros: null,
    buyer: null,
  } as KeyRecord;
  const listing = { id: ID, providerId: 'provider', status: 'active', priceMicros: 5, timeoutSeconds: 1 } as Listing;
  const options = {
    gate: { identify: () => key, heard: () => {} },
    catalog: { get: () => listing, ready: () => true },
    offers: {
      of: () => ({
        destination: { isFullFor: () => false },
        basePath: '',
        terms: new CallTerms({ id: ID, providerId: 'provider', priceMicros: 5, freeCalls: 0 }),
        operations: null,
        tools: null,
        headers: null,
        query: null,
        blocked: null,
        breaker: new Breakers().of('', ''),
      }),
    },
    admission: {
      buyer: () => buyer,
      admit: (_request: unknown, listener: AdmissionListener) => listener.onAdmission(admitted),
      settle: (_id: string, _buyer: Buyer, refund: boolean, text: string) => seen.settled.push([refund, text]),
    },
    upstream: {
      dispatch: (_request: unknown, given: UpstreamHandler) => {
        handler = given;
        return {
          write: () => false,
          end() {},
          pause() {},
          resume() {},
          destroy: () => {
            seen.destroyed = true;
          },
          requestStarted: true,
          requestSent: false,
        };
      },
    },
    pseudonyms: { of: () => 'pseudonym' },
    maxRequestBodyBytes: 1000,
    bufferedBytes,
    operator: new Operator({}, null),
    backlogFull: () => false,
    counters: newCounters(),
    log: { debug() {}, info() {}, warn() {}, error() {}, fatal() {} },
  } as unknown as ExchangeOptions;
  startExchange(options, head, caller);
  if (events === undefined || handler === undefined) throw new Error('the call was not forwarded');
  const answer = (): void => {
    handler?.onHead({ status: 200, headers: [], isAscii: true, contentLength: -1, hasBody: true, framing: 'chunked' });
    handler?.onData(Buffer.from('x'));
  };
  return { events, handler, answer, seen };
}

describe('request bodies that services do not read', () => {
  it('end the answered call that buffers most, which is charged, when they exceed the bound', () => {
    const buffered = new BufferedBytes(100);
    const first = startCall(buffered);
    first.answer();
    first.events.onCallerBody(new Uint8Array(90), false);
    expect(first.seen.aborted).toBe(false);
    const second = startCall(buffered);
    second.answer();
    second.events.onCallerBody(new Uint8Array(20), false);
    expect(first.seen).toMatchObject({ aborted: true, destroyed: true });
    expect(first.seen.settled).toEqual([[false, expect.stringMatching(/^completed\t200\t/)]]);
    // The first call's bytes are free again, so the second call goes on.
    expect(buffered.full).toBe(false);
    second.events.onCallerBody(new Uint8Array(80), false);
    expect(second.seen).toEqual({ settled: [], aborted: false, destroyed: false });
    second.events.onCallerBody(new Uint8Array(1), false);
    expect(second.seen).toMatchObject({ aborted: true, destroyed: true });
    expect(buffered.full).toBe(false);
  });

  it('are neither counted nor the reason to end a call that can still be paused, until its response begins', () => {
    const buffered = new BufferedBytes(100);
    const paused = startCall(buffered);
    paused.events.onCallerBody(new Uint8Array(200), false);
    expect(buffered.full).toBe(false);
    const streaming = startCall(buffered);
    streaming.answer();
    streaming.events.onCallerBody(new Uint8Array(1), false);
    expect([paused.seen.aborted, streaming.seen.aborted]).toEqual([false, false]);
    paused.answer();
    streaming.events.onCallerBody(new Uint8Array(1), false);
    expect([paused.seen.aborted, streaming.seen.aborted]).toEqual([true, false]);
    expect(buffered.full).toBe(false);
  });

  it('count only until the service reads them', () => {
    const buffered = new BufferedBytes(100);
    const { events, handler, answer } = startCall(buffered);
    answer();
    events.onCallerBody(new Uint8Array(100), false);
    expect(buffered.full).toBe(false);
    const other = startCall(buffered);
    other.events.onCallerBody(new Uint8Array(1), false);
    other.answer();
    expect(buffered.full).toBe(true);
    handler.onWritable();
    expect(buffered.full).toBe(false);
  });
});
