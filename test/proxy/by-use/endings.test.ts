import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Buyer } from '../../../src/admission/buyer.ts';
import { CallTerms } from '../../../src/admission/call-terms.ts';
import type { AdmissionListener, AdmitRequest } from '../../../src/admission/commands.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../../../src/gate/caller-io.ts';
import { PROXY_PREFIX } from '../../../src/gate/caller-io.ts';
import { formatUsd } from '../../../src/platform/money.ts';
import { Breakers } from '../../../src/proxy/breakers.ts';
import { BufferedBytes } from '../../../src/proxy/buffered-bytes.ts';
import { UnheardCalls } from '../../../src/proxy/by-use/unheard-calls.ts';
import { startExchange } from '../../../src/proxy/exchange.ts';
import { type ExchangeOptions, newCounters } from '../../../src/proxy/exchange-options.ts';
import { type ResponseHead, UpstreamError, type UpstreamHandler } from '../../../src/upstream/index.ts';
import { NO_OWNER } from '../../support/store.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const TIMEOUT_SECONDS = 20;
const CUT = new UpstreamError({ code: 'reset', message: 'cut' }, true, true);
const SILENCE = new UpstreamError({ code: 'body_timeout', message: 'silent' }, true, true);
const rate = { limit: 60, tokens: 59 * 60_000, remaining: 59, resetSeconds: 1, retryAfterSeconds: 0 };

type Sold = { readonly price: number; readonly more: number; readonly ceiling: number | null };

/** A call that was admitted, with all that is around it, or the error that refused it. */
class Scene {
  readonly unheard = new UnheardCalls(1);
  /** What the call cost; 'refunded', or 'open' as long as it is not settled. */
  cost: number | string = 'open';
  lines = '';
  isAborted = false;
  isSlow = false;
  readonly breaker = new Breakers().of('', '');
  readonly buffered = new BufferedBytes(100);
  readonly upstream = {
    isPaused: false,
    requestSent: true,
    isDestroyed: false,
    pause: (): void => {
      this.upstream.isPaused = true;
    },
    write: () => false,
    end() {},
    resume: (): void => {
      this.upstream.isPaused = false;
    },
    destroy: (): void => {
      this.upstream.isDestroyed = true;
    },
    handTo: (handler: UpstreamHandler): void => {
      this.service = handler;
    },
  };
  readonly caller = {
    aborted: false,
    wasCut: false,
    attach: (events: CallerEvents): void => {
      this.events = events;
    },
    respond: (_status: number, _lines: string, body: string): void => {
      this.cost = JSON.parse(body).error;
    },
    begin: (_status: number, lines: string): void => {
      this.lines = lines;
    },
    write: () => !this.isSlow,
    end() {},
    pauseBody() {},
    abort: (): void => {
      this.isAborted = true;
    },
  };
  service!: UpstreamHandler;
  events!: CallerEvents;

  constructor({ price, more, ceiling }: Sold) {
    const listing = { id: ID, providerId: 'provider', status: 'active', timeoutSeconds: TIMEOUT_SECONDS };
    const buyer = new Buyer('key', 'account', '', '');
    const key = {
      accountId: 'account',
      keyId: 'key',
      role: 'buyer',
      accountStatus: 'active',
      services: null,
      maxPriceMicros: null,
      buyer,
    };
    const sold = { id: ID, providerId: 'provider', priceMicros: price, maxPriceMicros: price + more, freeCalls: 0 };
    let held = 0;
    const options = {
      gate: {
        identify: () => key,
        heard() {},
        take: (_who: unknown, done: (passage: object) => void) => done({ rate, refusal: null }),
      },
      catalog: { get: () => listing, ready: () => true },
      offers: {
        of: () => ({
          destination: { isFullFor: () => false },
          basePath: '',
          terms: new CallTerms(sold),
          operations: null,
          tools: null,
          headers: null,
          query: null,
          blocked: null,
          breaker: this.breaker,
        }),
      },
      admission: {
        admit: ({ terms }: AdmitRequest, listener: AdmissionListener) => {
          held = terms.heldMicros;
          const balanceMicros = 1_000_000 - held;
          const taken = { amountMicros: held, authorizedMicros: held, freeTier: false, freeLeft: null, balanceMicros };
          listener.onAdmission({ outcome: 'admitted', rate, owner: NO_OWNER, ...taken });
        },
        settle: (...[, , isRefund, , , captured]: [string, Buyer, boolean, string, object, number | null]) => {
          expect(this.cost).toBe('open');
          this.cost = isRefund ? 'refunded' : Math.min(captured ?? held, held);
        },
      },
      upstream: {
        dispatch: (_request: unknown, handler: UpstreamHandler) => {
          this.service = handler;
          return this.upstream;
        },
      },
      pseudonyms: { of: () => 'pseudonym' },
      maxRequestBodyBytes: 1_000,
      backlogFull: () => false,
      unheardCalls: this.unheard,
      bufferedBytes: this.buffered,
      counters: newCounters(),
      log: { debug() {}, info() {}, warn() {}, error() {}, fatal() {} },
    } as unknown as ExchangeOptions;
    const headers = ceiling === null ? [] : ['x-acf-max-amount', formatUsd(ceiling)];
    const head = { method: 'GET', path: `${PROXY_PREFIX}${ID}/`, headers, isAscii: true, bodyLength: 0, fault: null };
    startExchange(options, head as unknown as RequestHead, this.caller as unknown as CallerStream);
  }

  answers(status: number, headers: string[], framing: ResponseHead['framing'] = 'chunked'): void {
    const contentLength = framing === 'length' ? 1_000 : -1;
    this.service.onHead({ status, headers, isAscii: true, contentLength, hasBody: true, framing });
    if (this.upstream.isDestroyed) return;
    this.service.onData(Buffer.from('text'));
  }

  leaves(): void {
    this.caller.aborted = true;
    this.events.onCallerGone();
  }

  isSlowFor(ms: number): void {
    this.isSlow = true;
    this.service.onData(Buffer.from('more'));
    vi.advanceTimersByTime(ms);
  }

  goesOnAfter(ms: number): void {
    this.events.onCallerWritable();
    vi.advanceTimersByTime(ms);
  }
}

/** How a call ends once it is answered, and what that costs: all that is reported, what is held without a report, or nothing. */
const ENDINGS: Readonly<
  Record<string, [how: (scene: Scene, trailers: string[]) => void, 'reported' | 'held' | 'nothing']>
> = {
  'is complete': [(scene, trailers) => scene.service.onEnd(trailers), 'reported'],
  'is cut by its service': [(scene) => scene.service.onError(CUT), 'nothing'],
  'is stopped by the drain': [
    (scene) => {
      scene.caller.wasCut = true;
      scene.leaves();
    },
    'nothing',
  ],
  'is left, and then complete': [
    (scene, trailers) => {
      scene.leaves();
      if (!scene.upstream.isDestroyed) scene.service.onEnd(trailers);
    },
    'reported',
  ],
  'is left, and then cut by its service': [
    (scene) => {
      scene.leaves();
      if (!scene.upstream.isDestroyed) scene.service.onError(CUT);
    },
    'held',
  ],
  'is left, and not complete in time': [
    (scene) => {
      scene.leaves();
      vi.advanceTimersByTime(TIMEOUT_SECONDS * 1_000);
      expect(scene.upstream.isDestroyed).toBe(true);
    },
    'held',
  ],
  'is left, and longer than is read on': [
    (scene) => {
      scene.leaves();
      const chunk = { length: 67_108_860 } as Buffer;
      if (!scene.upstream.isDestroyed) scene.service.onData(chunk);
      if (!scene.upstream.isDestroyed) scene.service.onData(Buffer.alloc(5));
    },
    'held',
  ],
  'is cut while its slow caller holds it up': [
    (scene) => {
      scene.isSlowFor(30_000);
      scene.service.onError(CUT);
      expect(scene.isAborted).toBe(true);
    },
    'held',
  ],
  'is left before its request has arrived whole': [
    (scene) => {
      scene.upstream.requestSent = false;
      scene.leaves();
      expect(scene.upstream.isDestroyed).toBe(true);
    },
    'held',
  ],
  'has a service that falls silent, although its slow caller held it up': [
    (scene) => {
      scene.isSlowFor(30_000);
      scene.service.onError(SILENCE);
    },
    'nothing',
  ],
  'is cut within a minute after its slow caller held it up': [
    (scene) => {
      scene.isSlowFor(31_000);
      scene.goesOnAfter(59_000);
      scene.service.onError(CUT);
    },
    'held',
  ],
  'is cut longer after its slow caller held it up': [
    (scene) => {
      scene.isSlowFor(31_000);
      scene.goesOnAfter(61_000);
      scene.service.onError(CUT);
    },
    'nothing',
  ],
  'is cut while its caller was slow, but not for long': [
    (scene) => {
      scene.isSlowFor(29_000);
      scene.service.onError(CUT);
    },
    'nothing',
  ],
};

const amounts = fc.integer({ min: 0, max: 300 });
const report = fc.option(fc.oneof(amounts.map(formatUsd), fc.constantFrom('-1', '1e3', '', '0.0000001')));
const fields = (value: string | null): string[] => (value === null ? [] : ['X-ACF-Charge', value]);
const microsOf = (value: string | null): number | null =>
  value !== null && /^\d+(\.\d{1,6})?$/.test(value) ? Math.round(Number(value) * 1e6) : null;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe.each(Object.entries(ENDINGS))('a call priced by use that %s', (_name, [how, costs]) => {
  it('costs what the contract says, for any report, hold and highest price', () => {
    const sold = fc.record({ price: amounts, more: amounts, ceiling: fc.option(amounts) });
    const property = fc.property(
      sold,
      report,
      report,
      fc.constantFrom(200, 404, 500),
      (sold, head, trailer, status) => {
        const scene = new Scene(sold);
        const ceiling = sold.ceiling ?? Number.POSITIVE_INFINITY;
        if (ceiling < sold.price) {
          expect(scene.cost).toBe('price_exceeds_maximum');
          return;
        }
        scene.answers(status, fields(head));
        how(scene, fields(trailer));
        const held = Math.min(sold.price + sold.more, ceiling);
        const known = microsOf(head);
        const reported = known ?? microsOf(trailer) ?? sold.price;
        const charged = Math.min(costs === 'reported' ? reported : (known ?? held), held);
        // Without a hold there is nothing to give back or to read on for: both ways cost nothing.
        const isRefunded = status >= 500 || costs === 'nothing';
        expect(scene.cost).toBe(isRefunded ? 'refunded' : charged);
        expect(scene.unheard.size).toBe(0);
        if (status < 500) {
          const isOpen = known === null && held > 0;
          expect(scene.lines).toContain(`X-ACF-Amount: ${formatUsd(isOpen ? held : Math.min(known ?? 0, held))}\r\n`);
          expect(scene.lines.includes('X-ACF-Held: true')).toBe(isOpen);
        }
      },
    );
    fc.assert(property, { numRuns: 150 });
  });
});

it('when the gateway stops, calls that continue without a caller are refunded, and their responses are no longer read', () => {
  const scene = new Scene({ price: 10, more: 90, ceiling: null });
  scene.answers(200, []);
  scene.leaves();
  expect([scene.cost, scene.unheard.size, scene.upstream.isDestroyed]).toEqual(['open', 1, false]);
  scene.unheard.stop();
  expect([scene.cost, scene.unheard.size, scene.upstream.isDestroyed]).toEqual(['refunded', 0, true]);
});

it('the service of a slow caller can continue once the caller leaves', () => {
  const scene = new Scene({ price: 10, more: 90, ceiling: null });
  scene.answers(200, []);
  scene.isSlowFor(60_000);
  expect(scene.upstream.isPaused).toBe(true);
  scene.leaves();
  expect(scene.upstream.isPaused).toBe(false);
  scene.service.onEnd(['x-acf-charge', '0.00005']);
  expect(scene.cost).toBe(50);
});

describe.each([
  ['with a length', 'length'],
  ['that ends with its connection', 'close'],
] as const)('a response %s, which can have no trailers', (_framing, framing) => {
  it.each([
    ['left after its head', true],
    ['left before its head', false],
  ])('costs the price without a report, and is not read further, when it is %s', (_name, isAnswered) => {
    const scene = new Scene({ price: 10, more: 90, ceiling: null });
    if (!isAnswered) scene.leaves();
    scene.answers(200, [], framing);
    if (isAnswered) scene.leaves();
    expect([scene.cost, scene.unheard.size, scene.upstream.isDestroyed]).toEqual([10, 0, true]);
  });
});

it('a request body that is given up frees its connection and bytes, and the whole held amount is captured', () => {
  const scene = new Scene({ price: 10, more: 90, ceiling: null });
  scene.upstream.requestSent = false;
  scene.answers(200, []);
  scene.events.onCallerBody(Buffer.alloc(100), false);
  expect([scene.cost, scene.buffered.full]).toEqual(['open', false]);
  scene.events.onCallerBody(Buffer.alloc(1), false);
  expect([scene.cost, scene.unheard.size, scene.upstream.isDestroyed]).toEqual([100, 0, true]);
  expect([scene.isAborted, scene.buffered.full]).toEqual([true, false]);
});

it('the breaker learns that a service did not answer calls whose callers left', () => {
  const scene = new Scene({ price: 10, more: 90, ceiling: null });
  const failed = vi.spyOn(scene.breaker, 'failed');
  scene.leaves();
  scene.service.onError(new UpstreamError({ code: 'head_timeout', message: 'silent' }, false, true));
  expect(scene.cost).toBe('refunded');
  expect(failed).toHaveBeenCalledOnce();
});
