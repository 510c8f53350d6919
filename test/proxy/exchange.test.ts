import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { Buyer } from '../../src/admission/buyer.ts';
import type { AdmissionListener } from '../../src/admission/commands.ts';
import type { Listing } from '../../src/catalog/listing.ts';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import type { Passage } from '../../src/gate/gate.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { Breakers } from '../../src/proxy/breakers.ts';
import { startExchange } from '../../src/proxy/exchange.ts';
import { type ExchangeOptions, newCounters } from '../../src/proxy/exchange-options.ts';
import type { Messages, PricedMessage } from '../../src/proxy/mcp/messages.ts';
import { until } from '../support/wait.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const rate = { limit: 60, tokens: 59 * 60_000, remaining: 59, resetSeconds: 1, retryAfterSeconds: 0 };

it('a call is refused before any money moves when all connections of the service are in use and its line is full', () => {
  const answers: [status: number, error: string][] = [];
  const caller = {
    respond: (status: number, _lines: string, body: string) => answers.push([status, JSON.parse(body).error]),
  } as unknown as CallerStream;
  const key = {
    accountId: 'account',
    keyId: 'key',
    role: 'buyer',
    accountStatus: 'active',
    services: null,
    maxPriceMicros: null,
  } as KeyRecord;
  const listing = { id: ID, providerId: 'provider', status: 'active', priceMicros: 5, timeoutSeconds: 1 } as Listing;
  const options = {
    gate: {
      identify: () => key,
      take: (_who: unknown, done: (passage: Passage) => void) => done({ rate, refusal: null }),
    },
    catalog: { get: () => listing, ready: () => true },
    offers: {
      of: () => ({
        destination: { isFullFor: () => true },
        terms: { priceMicros: 5, maxPriceMicros: null, upTo: (): unknown => ({}) },
        operations: null,
        tools: null,
        headers: null,
        query: null,
        blocked: null,
        breaker: new Breakers().of('', ''),
      }),
    },
    // Any other use of these throws.
    admission: {},
    upstream: {},
    topUpUrl: null,
    backlogFull: () => false,
    counters: newCounters(),
    log: { debug() {}, info() {}, warn() {}, error() {}, fatal() {} },
  } as unknown as ExchangeOptions;
  const head = { method: 'GET', path: `${PROXY_PREFIX}${ID}/`, headers: [], bodyLength: 0, fault: null };
  startExchange(options, head as unknown as RequestHead, caller);
  expect(answers).toEqual([[503, 'upstream_busy']]);
  expect(options.counters.refused).toEqual(new Map([['upstream_busy', 1]]));
});

it('the message of a call to an MCP server is released once the service has it, however long the answer takes', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
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
  const listing = { id: ID, providerId: 'provider', status: 'active', priceMicros: 5, timeoutSeconds: 1 } as Listing;
  const admitted = {
    outcome: 'admitted',
    rate,
    amountMicros: 5,
    authorizedMicros: null,
    balanceMicros: 0,
    freeTier: false,
    owner: '',
  };
  const terms = { priceMicros: 5, maxPriceMicros: null, upTo: (): unknown => terms };
  let message: WeakRef<Buffer> | null = null;
  let written = 0;
  const options = {
    gate: { identify: () => key, heard() {} },
    catalog: { get: () => listing, ready: () => true },
    offers: {
      of: () => ({
        destination: { isFullFor: () => false },
        basePath: '',
        operations: null,
        terms,
        tools: {},
        headers: null,
        query: null,
        blocked: null,
        breaker: new Breakers().of('', ''),
      }),
    },
    messages: {
      read: (...[, , , , listener]: Parameters<Messages['read']>) => {
        const body = Buffer.alloc(100_000);
        message = new WeakRef(body);
        listener.onMessage({ terms, mark: '', message: { body, digest: null } } as unknown as PricedMessage);
      },
    },
    admission: { admit: (_command: unknown, listener: AdmissionListener) => listener.onAdmission(admitted as never) },
    upstream: {
      dispatch: () => ({
        write: (chunk: Buffer) => {
          written += chunk.length;
          return true;
        },
        end() {},
      }),
    },
    pseudonyms: { of: () => 'pseudonym' },
    maxRequestBodyBytes: 100_000,
    backlogFull: () => false,
    counters: newCounters(),
  } as unknown as ExchangeOptions;
  const head = { method: 'POST', path: `${PROXY_PREFIX}${ID}/`, headers: [], bodyLength: 100_000, fault: null };
  const caller = { aborted: false, attach() {} } as unknown as CallerStream;
  const call = startExchange(options, head as unknown as RequestHead, caller);
  expect(written).toBe(100_000);
  await until(() => {
    collectGarbage();
    return (message as WeakRef<Buffer> | null)?.deref() === undefined;
  }, 2_000);
  expect(call.isRefunded).toBe(false);
});
