// Callers that call without a pause, each over one kept-alive connection, and remember what they were told.

import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { authorization, type Key } from '../integration/market-client.ts';
import { type Buyer, CEILING_MICROS, type Listing } from './market.ts';
import { Random } from './random.ts';

/** One call as its caller saw it. */
export type Told = {
  readonly accountId: string;
  /** The buyer's own, or one below it. */
  readonly keyId: string;
  readonly listing: Listing;
  readonly path: string;
  /** 0: no response head came. */
  status: number;
  /** X-Request-Id, which is on every response. For a call it is the usage id, whether admitted or not. */
  requestId: string | null;
  /** X-ACF-Usage-Id; null when the call was not admitted. */
  usageId: string | null;
  amountMicros: number | null;
  /** The amount is what is held: the record says what the call cost. */
  isHeld: boolean;
  freeTier: boolean | null;
  balanceMicros: number | null;
  /** Whether the response ended properly. */
  complete: boolean;
  /** When the call began and ended, as of `Date.now()`. */
  readonly atMs: number;
  endMs: number;
  /** The caller left before the end. */
  left: boolean;
  /** The error code of a refusal. */
  code: string | null;
  /** Whose budget refused it, and what was left in it. */
  limitKey: string | null;
  remainingMicros: number | null;
};

/** A caller gives up when it has had no answer for this long. */
const PATIENCE_MS = 2_500;

/** Requests to the service, as the fixture understands them, each drawn in proportion to its weight. */
const WISHES: readonly (readonly [weight: number, path: (random: Random) => string])[] = [
  [30, () => '/fast'],
  [20, (random) => `/slow/${random.int(5, 150)}`],
  [10, (random) => `/stream/${random.int(1, 12)}`],
  [6, (random) => `/large/${random.int(1, 8)}`],
  [5, () => '/missing'],
  [6, () => '/broken'],
  [4, () => '/cut'],
  [3, () => '/gone'],
];

export class Caller {
  readonly told: Told[] = [];
  readonly #url: string;
  readonly #keys: readonly Key[];
  readonly #listings: readonly Listing[];
  readonly #random: Random;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url: string, buyer: Buyer, listings: readonly Listing[], seed: number) {
    this.#url = url;
    this.#keys = [buyer.key, ...buyer.children.map(({ key }) => key)];
    this.#listings = listings;
    this.#random = new Random(seed);
  }

  /** Calls until `isOver`; the last call is finished. */
  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#call();
      await sleep(this.#random.int(0, 12));
    }
    this.#agent.destroy();
  }

  #call(): Promise<void> {
    const random = this.#random;
    const listing = random.pick(this.#listings);
    const key = random.pick(this.#keys);
    const path = draw(random);
    const told: Told = {
      accountId: key.account_id,
      keyId: key.key_id,
      listing,
      path,
      status: 0,
      requestId: null,
      usageId: null,
      amountMicros: null,
      isHeld: false,
      freeTier: null,
      balanceMicros: null,
      complete: false,
      atMs: Date.now(),
      endMs: 0,
      left: false,
      code: null,
      limitKey: null,
      remainingMicros: null,
    };
    this.told.push(told);
    const body = random.chance(0.25) ? Buffer.alloc(random.int(1, 60_000), 'b') : null;
    const ceiling = random.chance(0.2) ? { 'X-ACF-Max-Amount': String(CEILING_MICROS / 1e6) } : {};
    const leavesAfterMs = random.chance(0.08) ? random.int(0, 60) : PATIENCE_MS;
    return new Promise((resolve) => {
      const sent = request(
        `${this.#url}/api/v1/proxy/${listing.id}${path}`,
        {
          agent: this.#agent,
          method: body === null ? 'GET' : 'POST',
          headers: { Authorization: authorization(key), 'Content-Length': body?.length ?? 0, ...ceiling },
        },
        (response) => {
          note(told, response);
          response.on('error', () => {});
          let error = '';
          response.on('close', () => {
            told.complete = response.complete;
            if (isOurError(response)) noteError(told, error);
            over();
          });
          response.on('data', (bytes: Buffer) => {
            if (told.status >= 400) error += bytes.toString('latin1');
          });
        },
      );
      // To the gateway, a caller that lost patience looks like a killed one: its connection is gone.
      const timer = setTimeout(() => {
        told.left = true;
        sent.destroy();
      }, leavesAfterMs);
      const over = (): void => {
        clearTimeout(timer);
        told.endMs = Date.now();
        resolve();
      };
      sent.on('error', over);
      sent.on('close', over);
      sent.end(body ?? undefined);
    });
  }
}

function draw(random: Random): string {
  const total = WISHES.reduce((sum, [weight]) => sum + weight, 0);
  let left = random.next() * total;
  for (const [weight, path] of WISHES) {
    left -= weight;
    if (left < 0) return path(random);
  }
  throw new Error('the weights do not add up');
}

/** The service answers errors in plain text. */
const isOurError = ({ complete, statusCode = 0, headers }: IncomingMessage): boolean =>
  complete && statusCode >= 400 && (headers['content-type'] ?? '').startsWith('application/json');

function noteError(told: Told, body: string): void {
  const { error, limit_key: limitKey = null, remaining = null } = JSON.parse(body) as ErrorBody;
  told.code = error;
  told.limitKey = limitKey;
  told.remainingMicros = remaining === null ? null : Math.round(remaining * 1e6);
}

type ErrorBody = { readonly error: string; readonly limit_key?: string; readonly remaining?: number };

function note(told: Told, response: IncomingMessage): void {
  const text = (name: string): string | null => (response.headers[name] as string | undefined) ?? null;
  const micros = (name: string): number | null => {
    const value = text(name);
    return value === null ? null : Math.round(Number(value) * 1e6);
  };
  told.status = response.statusCode ?? 0;
  told.requestId = text('x-request-id');
  told.usageId = text('x-acf-usage-id');
  told.amountMicros = micros('x-acf-amount');
  told.isHeld = text('x-acf-held') === 'true';
  told.balanceMicros = micros('x-acf-balance');
  const free = text('x-acf-free-tier');
  told.freeTier = free === null ? null : free === 'true';
}
