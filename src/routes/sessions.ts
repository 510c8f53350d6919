import { ApiError, unauthorizedError } from '../errors.ts';
import { isOwnPage, refuseAllButOwnPage } from '../http/own-origin.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../http/route.ts';
import { keyOf, ROLES } from '../keys/caller.ts';
import { decidingCredentials, splitBearer, verifySecret } from '../keys/credentials.ts';
import { KEY, KEY_ID } from '../keys/key-fields.ts';
import { CACHE_CONTROL } from '../openapi/headers.ts';
import { COUNT, EXAMPLE, json, list, orNull, record, TEXT, TIME, UUID } from '../openapi/schemas.ts';
import { systemClock } from '../platform/clock.ts';
import { isUuid } from '../platform/ids.ts';
import { cookieFor, newBrowser, PAGE_SECRET, shownBrowsers } from '../sessions/browser.ts';
import { Holders } from '../sessions/holders.ts';
import { type Sessions, secondsLeft } from '../sessions/sessions.ts';
import type { SessionRow } from '../sessions/sessions-sql.ts';

const PATH = '/api/v1/session';
const NO_STORE = { 'Cache-Control': 'no-store' };
const NOT_STORED = { 'Cache-Control': CACHE_CONTROL('no-store') };
const SETS_COOKIE = {
  'Set-Cookie': {
    description:
      'Only for this path: host-only, HttpOnly, SameSite=Strict; on https Secure, and its name begins with __Secure-',
    schema: { type: 'string' },
    example: `tollgate-session=…; Path=${PATH}; Max-Age=1209600; HttpOnly; SameSite=Strict`,
  },
} as const;
const FORGETS_COOKIE = {
  'Set-Cookie': { ...SETS_COOKIE['Set-Cookie'], description: 'Makes the browser forget its cookie', optional: true },
} as const;

const SESSION = record('Session', {
  id: UUID,
  key_id: { ...KEY_ID, description: 'The key that signed in' },
  account_id: UUID,
  owner_id: { ...TEXT, description: 'The label of the account' },
  role: KEY.role.schema,
  label: { ...orNull(TEXT), description: 'The label of the key' },
  created_at: TIME,
  last_used_at: { ...TIME, description: 'When it last got a bearer' },
  expires_at: TIME,
  is_here: { type: 'boolean', description: 'Whether it is one of this browser' },
});
const EXAMPLE_ID = 'b3f0c9a2-5d3e-4f57-9a1c-0e6d2b7f4c11';
const EXAMPLE_SESSION = {
  id: EXAMPLE_ID,
  key_id: EXAMPLE.keyId,
  account_id: EXAMPLE.accountId,
  owner_id: 'acme-bot',
  role: 'buyer',
  label: null,
  created_at: EXAMPLE.time,
  last_used_at: EXAMPLE.time,
  expires_at: EXAMPLE.time,
  is_here: true,
};
const SESSIONS = record('Sessions', { sessions: list(SESSION, 'The last used first') });
const BEARER = record('Bearer', {
  id: { ...UUID, description: 'The session' },
  key_id: KEY_ID,
  bearer: {
    type: 'string',
    pattern: '^acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}$',
    description:
      'Sent in the same way as a key. A request with it counts as one of the key that signed in; it cannot sign in',
  },
  expires_at: { ...TIME, description: 'In 7.5 to 15 minutes, or when the session ends' },
});
const ENDED = record('EndedSessions', { ended: { ...COUNT, description: 'How many sessions' } });

const EVERYWHERE_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    everywhere: {
      type: 'boolean',
      description:
        'Also in other browsers: the sessions of the accounts that are signed in here, with keys of no higher role; of a child key, its own and of those below it',
    },
  },
} as const;
type EverywhereQuery = FromSchema<typeof EVERYWHERE_QUERY>;

const TOKEN_BODY = {
  title: 'SessionChoice',
  examples: [{ id: EXAMPLE_ID }],
  type: 'object',
  additionalProperties: false,
  properties: {
    id: { type: 'string', maxLength: 36, description: 'Which session of this browser; absent: the last used' },
  },
} as const;

const REQUEST_HEADERS = {
  [PAGE_SECRET]: {
    description:
      'A random text that the page keeps in the storage of its origin. If it is sent at sign-in, the cookie alone is useless: a server on another port of the host sees the cookie, too',
    schema: { type: 'string' },
  },
} as const;

/** The routes of docs/api.md, 'Sessions': people who are signed in in a browser. */
export function sessionsRoutes({ sessions }: { readonly sessions: Sessions }): Route[] {
  const holders = new Holders(async (shown) => (await sessions.of(shown))[0]?.key_id ?? null);
  /** The common part of all routes that need a cookie. A wrong cookie counts against the address, like a wrong secret. */
  const withCookie = {
    access: 'cookie',
    bucket: 'control',
    forSuspended: true,
    requestHeaders: REQUEST_HEADERS,
    holder: async (request, mayLoad) => {
      return isOwnPage(request) ? holders.of(shownBrowsers(request.header), mayLoad) : null;
    },
  } as const satisfies Partial<Route>;

  return [
    {
      method: 'POST',
      path: PATH,
      summary: 'Sign in in a browser, with a key. A session that gets no bearer within a minute ends',
      access: ROLES,
      bucket: 'control',
      forChildren: true,
      forSuspended: true,
      requestHeaders: REQUEST_HEADERS,
      responses: { 201: json('The session', SESSION, EXAMPLE_SESSION, { ...NOT_STORED, ...SETS_COOKIE }) },
      handle: async (request) => {
        refuseAllButOwnPage(request);
        const { caller, header, requestId } = request;
        const key = keyOf(caller);
        const credentials = splitBearer(decidingCredentials(header('authorization'), header('x-api-key')) ?? '');
        if (credentials === null || !verifySecret(key, credentials.secret, systemClock)) {
          // Otherwise somebody who stole a bearer could turn its minutes into days.
          throw new ApiError('forbidden', 'A bearer cannot sign in: this takes the key itself.');
        }
        const next = newBrowser(header);
        const { session, browser, seconds } = await sessions.signIn(
          key,
          credentials.secret,
          shownBrowsers(header),
          next,
          requestId,
        );
        const setCookie = browser === null ? {} : { 'Set-Cookie': cookieFor(browser, seconds, PATH, header) };
        return { status: 201, body: shown(session, session.browser_hash), headers: { ...NO_STORE, ...setCookie } };
      },
    },
    {
      ...withCookie,
      method: 'POST',
      path: `${PATH}/token`,
      summary: 'A bearer for 15 minutes, for a page of a browser that is signed in',
      body: TOKEN_BODY,
      responses: {
        200: json(
          'The bearer',
          BEARER,
          {
            id: EXAMPLE_ID,
            key_id: EXAMPLE.keyId,
            bearer: `${EXAMPLE.keyId}:${EXAMPLE.secret}`,
            expires_at: EXAMPLE.time,
          },
          NOT_STORED,
        ),
      },
      handle: async (request: ApiRequest<FromSchema<typeof TOKEN_BODY> | undefined>) => {
        refuseAllButOwnPage(request);
        const id = request.body?.id ?? null;
        if (request.caller.kind !== 'key' || (id !== null && !isUuid(id))) throw noSessionError();
        const bearer = await sessions.bearer(shownBrowsers(request.header), id);
        if (bearer === null) throw noSessionError();
        const { id: session, key_id: keyId } = bearer.session;
        const body = {
          ...{ id: session, key_id: keyId },
          ...{ bearer: `${keyId}:${bearer.secret}`, expires_at: bearer.expiresAt.toISOString() },
        };
        return { status: 200, body, headers: NO_STORE };
      },
    },
    {
      ...withCookie,
      method: 'GET',
      path: PATH,
      summary: 'The accounts that are signed in in this browser',
      query: EVERYWHERE_QUERY,
      responses: { 200: json('The sessions', SESSIONS, { sessions: [EXAMPLE_SESSION] }, NOT_STORED) },
      handle: async (request: ApiRequest<undefined, EverywhereQuery>) => {
        const [here, hash] = await browserOf(request);
        const rows = request.query.everywhere ? await sessions.inReach(hash) : here;
        return { status: 200, body: { sessions: rows.map((row) => shown(row, hash)) }, headers: NO_STORE };
      },
    },
    {
      ...withCookie,
      method: 'DELETE',
      path: PATH,
      summary: 'Sign out: end the sessions of this browser, or everywhere',
      query: EVERYWHERE_QUERY,
      responses: {
        200: json(
          'They have ended, and so have their bearers',
          ENDED,
          { ended: 2 },
          { ...NOT_STORED, ...FORGETS_COOKIE },
        ),
      },
      handle: async (request: ApiRequest<undefined, EverywhereQuery>) => {
        const [, hash] = await browserOf(request);
        return ended(await sessions.end(hash, request.query.everywhere ? 'everywhere' : 'here'), request, []);
      },
    },
    {
      ...withCookie,
      method: 'DELETE',
      path: `${PATH}/:id`,
      summary: 'End one session of this browser, or one that this browser may end',
      params: { id: { description: 'The session', schema: UUID, example: EXAMPLE_ID } },
      errors: ['not_found'],
      responses: {
        200: json('It has ended, and so have its bearers', ENDED, { ended: 1 }, { ...NOT_STORED, ...FORGETS_COOKIE }),
      },
      handle: async (request) => {
        const [, hash] = await browserOf(request);
        const id = request.params.id ?? '';
        const count = isUuid(id) ? await sessions.end(hash, { id }) : 0;
        if (count === 0) throw new ApiError('not_found', 'There is no such session.');
        return ended(count, request, await sessions.of(shownBrowsers(request.header)));
      },
    },
  ];

  /** The sessions of the requesting browser, and its hash. */
  async function browserOf(request: ApiRequest<unknown, unknown>): Promise<[readonly SessionRow[], string]> {
    refuseAllButOwnPage(request);
    const rows = request.caller.kind === 'key' ? await sessions.of(shownBrowsers(request.header)) : [];
    const [first] = rows;
    if (first === undefined) throw noSessionError();
    return [rows, first.browser_hash];
  }
}

/** @param left  the sessions that the browser still has */
function ended(count: number, { header }: Pick<ApiRequest, 'header'>, left: readonly SessionRow[]): ApiResponse {
  const forgets = secondsLeft(left) === 0 ? { 'Set-Cookie': cookieFor({ cookie: '' }, 0, PATH, header) } : {};
  return { status: 200, body: { ended: count }, headers: { ...NO_STORE, ...forgets } };
}

const shown = ({ browser_hash: hash, ...row }: SessionRow, here: string): object => ({
  ...row,
  created_at: row.created_at.toISOString(),
  last_used_at: row.last_used_at.toISOString(),
  expires_at: row.expires_at.toISOString(),
  is_here: hash === here,
});

/** The browser has no cookie, or the session has ended. */
const noSessionError = (): ApiError =>
  unauthorizedError('Nobody is signed in here: sign in with POST /api/v1/session and a key.');
