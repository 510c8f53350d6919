// Callers that call without a pause, each over one kept-alive connection, and remember what they were told.

import { createHash } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ERRORS, type ErrorCode } from '../../src/errors.ts';
import { authorization, type Key } from '../integration/market-client.ts';
import type { Buyer, Listing } from './market.ts';
import type { Asked, Notebook } from './notebook.ts';
import { Random } from './random.ts';
import { drawMarks, drawWish, IDEMPOTENCY_KEY, type Wish, withAnotherBody, withAnotherQuery } from './wishes.ts';

/** One call as its caller saw it. */
export type Told = Pick<Wish, 'listing' | 'path'> & {
  readonly accountId: string;
  /** The buyer's own, or one below it. */
  readonly keyId: string;
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
  /** X-ACF-Free-Left. */
  freeLeft: number | null;
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
  /** Its idempotency key, if it has one. */
  readonly idempotencyKey: string | null;
  /** Of method, path and query, and of the request body. */
  readonly target: string;
  readonly bodyDigest: string;
  /** It got the answer to another call again, whose usage id is `usageId`. */
  isReplayed: boolean;
  /** The usage id of the call to which the service gave this answer. */
  servedId: string | null;
  /** Digest of the answer's body, once the response has ended. */
  answerDigest: string | null;
  /** What the response says of the call and its cost: all X-ACF-* headers, sorted. */
  costs: readonly string[];
};

/** A caller gives up when it has had no answer for this long. */
const PATIENCE_MS = 2_500;

export class Caller {
  readonly told: Told[] = [];
  readonly #url: string;
  readonly #keys: readonly Key[];
  readonly #listings: readonly Listing[];
  readonly #random: Random;
  /** For what concerns idempotency keys and tags, so that a seed has the same wishes with any of them. */
  readonly #repeats: Random;
  readonly #notebook: Notebook;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  /** Mostly of another gateway. */
  readonly #otherAgent = new Agent({ keepAlive: true, maxSockets: 1 });

  /** @param notebook  of all callers of this buyer */
  constructor(url: string, buyer: Buyer, listings: readonly Listing[], seed: number, notebook: Notebook) {
    this.#url = url;
    this.#keys = [buyer.key, ...buyer.children.map(({ key }) => key)];
    this.#listings = listings;
    this.#random = new Random(seed);
    this.#repeats = new Random(seed ^ 0x1de0);
    this.#notebook = notebook;
  }

  /** Calls until `isOver`; the last call is finished. */
  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#turn();
      await sleep(this.#random.int(0, 12));
    }
    this.close();
  }

  close(): void {
    this.#agent.destroy();
    this.#otherAgent.destroy();
  }

  async #turn(): Promise<void> {
    const [random, repeats] = [this.#random, this.#repeats];
    const key = random.pick(this.#keys);
    const idempotencyKey = repeats.chance(0.4) ? this.#notebook.nextKey(key) : null;
    const asked = { key, wish: drawWish(random, this.#listings, drawMarks(repeats, idempotencyKey)) };
    const leavesAfterMs = random.chance(0.08) ? random.int(0, 60) : PATIENCE_MS;
    if (asked.wish.headers[IDEMPOTENCY_KEY] === undefined) {
      await this.call(asked, { leavesAfterMs });
    } else {
      this.#notebook.add(asked);
      const isTwice = repeats.chance(0.3);
      const other = isTwice ? this.call(varied(asked, repeats, 0.1), { agent: this.#otherAgent }) : null;
      const told = await this.call(asked, { leavesAfterMs });
      await other;
      if (isToBeRepeated(told) && repeats.chance(0.8)) await this.call(asked);
    }
    const former = repeats.chance(0.25) ? this.#notebook.draw(key, repeats) : null;
    if (former !== null) await this.call(varied(former, repeats, 0.3));
  }

  /** Makes a call, and remembers what it was told. */
  call(
    { key, wish }: Asked,
    { leavesAfterMs = PATIENCE_MS, agent = this.#agent }: { leavesAfterMs?: number; agent?: Agent } = {},
  ): Promise<Told> {
    const { listing, path, target, headers, body } = wish;
    const method = body === null ? 'GET' : 'POST';
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
      freeLeft: null,
      balanceMicros: null,
      complete: false,
      atMs: Date.now(),
      endMs: 0,
      left: false,
      code: null,
      limitKey: null,
      remainingMicros: null,
      idempotencyKey: headers[IDEMPOTENCY_KEY] ?? null,
      target: `${method} ${target}`,
      bodyDigest: sha256(body ?? ''),
      isReplayed: false,
      servedId: null,
      answerDigest: null,
      costs: [],
    };
    this.told.push(told);
    const isByTool = target === '/mcp';
    return new Promise((resolve) => {
      const sent = request(
        this.#url + target,
        {
          agent,
          method,
          headers: { Authorization: authorization(key), 'Content-Length': body?.length ?? 0, ...headers },
        },
        (response) => {
          note(told, response);
          response.on('error', () => {});
          let text = '';
          const received = createHash('sha256');
          response.on('close', () => {
            told.complete = response.complete;
            if (told.complete) told.answerDigest = received.digest('base64url');
            if (isOurError(response)) noteError(told, JSON.parse(text) as ErrorBody);
            else if (told.complete && isByTool) noteResult(told, text);
            over();
          });
          response.on('data', (bytes: Buffer) => {
            received.update(bytes);
            if (told.status >= 400 || isByTool) text += bytes.toString('latin1');
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
        resolve(told);
      };
      sent.on('error', over);
      sent.on('close', over);
      sent.end(body ?? undefined);
    });
  }
}

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('base64url');

/** As clients do that want an answer: what SDKs repeat, and calls whose answer was lost. */
const isToBeRepeated = ({ status, complete }: Told): boolean =>
  !complete || status === 409 || status === 429 || status >= 500;

/** Perhaps with something else under the same idempotency key. */
function varied({ key, wish }: Asked, random: Random, chance: number): Asked {
  if (!random.chance(chance)) return { key, wish };
  return { key, wish: random.chance(0.5) ? withAnotherBody(wish) : withAnotherQuery(wish) };
}

/** The service answers errors in plain text. */
const isOurError = ({ complete, statusCode = 0, headers }: IncomingMessage): boolean =>
  complete && statusCode >= 400 && (headers['content-type'] ?? '').startsWith('application/json');

function noteError(told: Told, { error, limit_key: limitKey, remaining }: ErrorBody): void {
  told.code = error;
  told.limitKey = limitKey ?? null;
  told.remainingMicros = remaining === undefined ? null : Math.round(remaining * 1e6);
}

type ErrorBody = { readonly error: ErrorCode; readonly limit_key?: string; readonly remaining?: number };

/** A tool's result, the last event of its stream, says what the proxy would have said by status and headers. */
function noteResult(told: Told, stream: string): void {
  const events = stream.split('\n').filter((line) => line.startsWith('data: {'));
  const { result } = JSON.parse((events.at(-1) as string).slice('data: '.length)) as { result: ToolResult };
  const { error, usage_id: usageId = null, ...more } = result.structuredContent;
  told.usageId = usageId;
  if (error === undefined) return;
  noteError(told, { ...more, error });
  told.status = ERRORS[error].status;
}

type ToolResult = {
  readonly structuredContent: Omit<ErrorBody, 'error'> & { readonly error?: ErrorCode; readonly usage_id?: string };
};

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
  told.isReplayed = text('idempotent-replayed') === 'true';
  told.servedId = text('x-served');
  const ours = Object.entries(response.headers).filter(([name]) => name.startsWith('x-acf-'));
  told.costs = ours.map(([name, value]) => `${name}: ${value}`).sort();
  const free = text('x-acf-free-tier');
  told.freeTier = free === null ? null : free === 'true';
  const left = text('x-acf-free-left');
  told.freeLeft = left === null ? null : Number(left);
}
