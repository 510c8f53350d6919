// What callers ask for: calls of the service, as the fixture understands their paths, and those that cost nothing by the contract's section
// 'What is not charged, and what comes back'. A path says how its call must end, because nothing else of it is in each record.

import type { ErrorCode } from '../../src/errors.ts';
import type { Listing } from './market.ts';
import type { Random } from './random.ts';

export type Wish = {
  readonly listing: Listing;
  /** What follows the service's id, or was given to the tool `call_service` as that. */
  readonly path: string;
  /** Where the request is sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Null: a GET. */
  readonly body: Buffer | null;
};

/** The most that some callers pay for a call priced by use. */
export const CEILING_MICROS = 3_000;
/** In which a listing with its own credentials lets callers forward theirs. */
export const CALLERS_CREDENTIAL = 'x-auth-token';

export const IDEMPOTENCY_KEY = 'Idempotency-Key';
const PROXY = '/api/v1/proxy/';
/** Parts of paths: the caller forwards credentials, takes a free call or none, or does not accept what MCP servers answer with. */
const [OWN, FREE_ONLY, UNACCEPTED] = ['/own', '/free-only', '/unaccepted'] as const;
/** Others: which of the tags the call has, and its idempotency key. */
const [TAGGED, KEYED] = ['/tag-', '/key-'] as const;

/** Tags of calls; one is the name of the rest. */
const TAGS = ['Customer-17/eu:a.b@c_d', 'other', 'x'.repeat(64)] as const;

/** What a call has beside its wish. */
export type Marks = {
  readonly idempotencyKey: string | null;
  /** The number of its tag. */
  readonly tag: number | null;
};

export function drawMarks(random: Random, idempotencyKey: string | null): Marks {
  return { idempotencyKey, tag: random.chance(0.3) ? random.int(0, TAGS.length - 1) : null };
}

type Call = Pick<Wish, 'listing' | 'path'>;

export const isFreeOnly = (path: string): boolean => path.split('/').includes(FREE_ONLY.slice(1));

const partAfter = (path: string, mark: string): string | null => path.split(mark)[1]?.split('/', 1)[0] ?? null;

/** The tag that the record must have. */
export function tagOf(path: string): string | null {
  const tag = partAfter(path, TAGGED);
  return tag === null ? null : (TAGS[Number(tag)] ?? null);
}

export const idempotencyKeyOf = (path: string): string | null => partAfter(path, KEYED);

export const costs = ({ priceMicros, maxMicros }: Listing): boolean => priceMicros > 0 || maxMicros !== null;

/** The error that refuses the call, whatever wallet and free calls have left; null: it may be admitted. */
export function refusalOf({ listing, path }: Call): ErrorCode | null {
  if (path.startsWith(PROXY)) return 'invalid_request';
  if (path.endsWith(UNACCEPTED)) return 'not_acceptable';
  return isFreeOnly(path) && costs(listing) && listing.freeCalls === 0 ? 'free_calls_used' : null;
}

const DENIALS = /^\/denied\/(401|407|429)(?!\/own)/;
const TOO_MANY = /^\/denied\/429/;
const OF_MCP_SERVERS = /^\/(redirect|unacceptable)/;

/** Whether the service refuses the credentials of the listing, and no others. */
export const isDenied = ({ listing, path }: Call): boolean => listing.hasCredentials && DENIALS.test(path);

/** Whether the service has too many requests of a call with an idempotency key. */
export const isTooMany = ({ path }: Call): boolean => TOO_MANY.test(path) && idempotencyKeyOf(path) !== null;

/** Whether the answer of the service is given back. */
export const isGivenBack = (call: Call): boolean =>
  isDenied(call) || isTooMany(call) || (call.listing.isMcp && OF_MCP_SERVERS.test(call.path));

/** Paths, each drawn in proportion to its weight. */
type Paths = readonly (readonly [weight: number, path: (random: Random) => string])[];

/** 403 is not among the answers that are given back. */
const denied = (random: Random): string => `/denied/${random.pick([401, 401, 407, 429, 403])}`;

const OF_ALL: Paths = [
  [30, () => '/fast'],
  [20, (random) => `/slow/${random.int(5, 150)}`],
  [10, (random) => `/stream/${random.int(1, 12)}`],
  [6, (random) => `/large/${random.int(1, 8)}`],
  [5, () => '/missing'],
  [3, denied],
  [6, () => '/broken'],
  [4, () => '/cut'],
  [3, () => '/gone'],
];
const WITH_CREDENTIALS: Paths = [...OF_ALL, [60, denied], [20, (random) => denied(random) + OWN]];
const OF_MCP: Paths = [...OF_ALL, [12, () => '/redirect'], [8, () => '/unacceptable']];

export function drawWish(random: Random, listings: readonly Listing[], marks: Marks): Wish {
  const listing = random.pick(listings);
  const { id, isMcp, hasCredentials, freeCalls } = listing;
  const of = isMcp ? OF_MCP : hasCredentials ? WITH_CREDENTIALS : OF_ALL;
  const [drawn, isOnlyFree] = [drawPath(random, of), random.chance(freeCalls > 0 ? 0.3 : 0.06)];
  const isAccepted = !isMcp || random.chance(0.8);
  const { idempotencyKey, tag } = marks;
  const marked = `${tag === null ? '' : TAGGED + tag}${idempotencyKey === null ? '' : KEYED + idempotencyKey}`;
  const path = `${drawn}${isOnlyFree ? FREE_ONLY : ''}${marked}${isAccepted ? '' : UNACCEPTED}`;
  const size = random.chance(0.25) ? random.int(1, 60_000) : 0;
  const ceiling = random.chance(0.2) ? { 'X-ACF-Max-Amount': String(CEILING_MICROS / 1e6) } : {};
  if (random.chance(0.03)) return byTool(listing, path);
  const headers = {
    ...ceiling,
    ...(isOnlyFree ? { 'X-ACF-Free-Only': 'true' } : {}),
    ...(tag === null ? {} : { 'X-ACF-Tag': TAGS[tag] as string }),
    ...(idempotencyKey === null ? {} : { [IDEMPOTENCY_KEY]: idempotencyKey }),
    ...(drawn.endsWith(OWN) ? { 'X-ACF-Forward': CALLERS_CREDENTIAL, [CALLERS_CREDENTIAL]: 'mine' } : {}),
  };
  const call = { listing, path, target: `${PROXY}${id}${path}` };
  if (!isMcp) return { ...call, headers, body: size === 0 ? null : Buffer.alloc(size, 'b') };
  const types = isAccepted ? MESSAGE : { ...MESSAGE, Accept: 'application/json' };
  return { ...call, headers: { ...headers, ...types }, body: toolCall('any', { text: 'b'.repeat(size) }) };
}

/** The same request with another body. */
export function withAnotherBody(wish: Wish): Wish {
  const text = 'another';
  return { ...wish, body: wish.listing.isMcp ? toolCall('any', { text }) : Buffer.from(text) };
}

/** The same request with another query, which no record has. */
export const withAnotherQuery = (wish: Wish): Wish => ({ ...wish, target: `${wish.target}?another` });

/** The mistake of agents that take the `proxy_path` of a service for what follows it. */
function byTool(listing: Listing, rest: string): Wish {
  const path = `${PROXY}${listing.id}${rest}`;
  const body = toolCall('call_service', { service_id: listing.id, method: 'GET', path });
  return { listing, path, target: '/mcp', headers: MESSAGE, body };
}

const MESSAGE = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

const toolCall = (name: string, args: object): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }));

function drawPath(random: Random, paths: Paths): string {
  const total = paths.reduce((sum, [weight]) => sum + weight, 0);
  let left = random.next() * total;
  for (const [weight, path] of paths) {
    left -= weight;
    if (left < 0) return path(random);
  }
  throw new Error('the weights do not add up');
}
