import { expect, it } from 'vitest';
import type { Listing } from '../../src/catalog/listing.ts';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import { PROXY_PREFIX } from '../../src/gate/caller-io.ts';
import type { Passage } from '../../src/gate/gate.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { Breakers } from '../../src/proxy/breakers.ts';
import { Exchange, type ExchangeOptions } from '../../src/proxy/exchange.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const rate = { limit: 60, tokens: 59 * 60_000, remaining: 59, resetSeconds: 1, retryAfterSeconds: 0 };

it('a call is refused before money is touched when all connections of the service are taken and its line is full', () => {
  const answers: [status: number, error: string][] = [];
  const caller = {
    respond: (status: number, _lines: string, body: string) => answers.push([status, JSON.parse(body).error]),
  } as unknown as CallerStream;
  const key = { accountId: 'account', keyId: 'key', role: 'buyer', accountStatus: 'active' } as KeyRecord;
  const listing = { id: ID, providerId: 'provider', status: 'active', priceMicros: 5, timeoutSeconds: 1 } as Listing;
  const options = {
    gate: {
      identify: () => key,
      take: (_who: unknown, done: (passage: Passage) => void) => done({ rate, refusal: null }),
    },
    catalog: { get: () => listing, ready: () => true },
    offers: {
      of: () => ({
        destination: { isFull: true },
        terms: { priceMicros: 5 },
        operations: null,
        tools: null,
        breaker: new Breakers().of('', ''),
      }),
    },
    // Any other use of these throws.
    admission: {},
    upstream: {},
    topUpUrl: null,
    backlogFull: () => false,
    counters: { admitted: 0, open: 0, completed: 0, refunded: new Map(), refused: new Map() },
    log: { debug() {}, info() {}, warn() {}, error() {}, fatal() {} },
  } as unknown as ExchangeOptions;
  const head = { method: 'GET', path: `${PROXY_PREFIX}${ID}/`, headers: [], bodyLength: 0, fault: null };
  new Exchange(options, head as unknown as RequestHead, caller).start();
  expect(answers).toEqual([[503, 'upstream_busy']]);
  expect(options.counters.refused).toEqual(new Map([['upstream_busy', 1]]));
});
