import { actorOf, adminAct, recordAct } from '../accounts/audit.ts';
import type { KeyActivity } from '../accounts/usage-sums.ts';
import { ApiError, unauthorizedError } from '../errors.ts';
import { refuseForeignPage } from '../http/own-origin.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../http/route.ts';
import type { Opener } from '../keys/account-openings.ts';
import { type KeyRecord, keyOf, ROLES, type Role, roleCovers } from '../keys/caller.ts';
import { equalConstantTime, hashSecret, isKeyId } from '../keys/credentials.ts';
import { type CreatedKey, KEY, KEY_ID, LISTED_KEY, NEW_KEY, OPERATOR_KEY, OWN_KEY } from '../keys/key-fields.ts';
import {
  type Alongside,
  type ChangedKey,
  DEFAULT_OVERLAP_SECONDS,
  type Keys,
  MAX_OVERLAP_SECONDS,
  otherOwnerError,
} from '../keys/keys.ts';
import { CACHE_CONTROL } from '../openapi/headers.ts';
import { EXAMPLE, json, list, ONE_LINE, orNull, record, TEXT } from '../openapi/schemas.ts';
import { AddressPolicy } from '../upstream/index.ts';
import { ifAct, keyAct, keyChanges } from './admin/key-acts.ts';
import { CHANGED_LIMITS, changeOf, LABEL, NEW_LIMITS, newChildOf } from './key-limits.ts';
import { checkChange, isChild, manageableKey } from './key-rights.ts';

type KeysRoutesDeps = {
  readonly keys: Keys;
  /** Reads when a key was last used and what it has spent: `selectKeyActivity` over Postgres. */
  readonly readActivity: (keyId: string) => Promise<KeyActivity>;
  /**
   * ADMIN_BOOTSTRAP_TOKEN. Anyone who sends it can open any number of admin accounts. Null if it is not set: then the first admin
   * account is opened without a token, and any further one only with an admin key.
   */
  readonly adminBootstrapToken: string | null;
  /** Accounts that one public address may open in a day; 0: any number. */
  readonly maxAccountsPerAddress: number;
  /** MAX_RATE_LIMIT. */
  readonly maxRateLimit: number;
};

const DEFAULT_LIMIT = 100;
/** More of them would tell their owner nothing new. */
const MAX_OPERATOR_KEYS = 20;

// No cache between gateway and caller may store the response: it contains the only copy of the secret.
const NO_STORE = { 'Cache-Control': 'no-store' };

const createBody = (maxRateLimit: number) =>
  ({
    title: 'NewKey',
    examples: [
      { owner_id: 'acme-bot', role: 'buyer' },
      { label: 'research agent', budget: { amount: 0.5, period: 'day' } },
    ],
    type: 'object',
    additionalProperties: false,
    properties: {
      // A label, stored as it was written. Control characters are refused, because it ends up in terminals, logs and CSV files.
      owner_id: {
        type: 'string',
        minLength: 1,
        maxLength: 200,
        pattern: ONE_LINE,
        description: 'Your label for the account; not an identity. Needed without a key',
      },
      role: { type: 'string', enum: [...ROLES], description: 'With a key: absent for a child key' },
      account_id: {
        type: 'string',
        pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
        description: 'The account that gets the key; for admins only',
      },
      label: LABEL,
      ...NEW_LIMITS(maxRateLimit),
    },
  }) as const;
type CreateBody = FromSchema<ReturnType<typeof createBody>>;

const LIST_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 1000, description: `Keys on a page; ${DEFAULT_LIMIT} if absent` },
    cursor: { type: 'string', maxLength: 100, description: 'next_cursor of the previous page' },
  },
} as const;
type ListQuery = FromSchema<typeof LIST_QUERY>;

const ROTATE_BODY = {
  title: 'KeyRotation',
  examples: [{ overlap_seconds: 600 }],
  type: 'object',
  additionalProperties: false,
  properties: {
    overlap_seconds: {
      type: 'integer',
      minimum: 0,
      maximum: MAX_OVERLAP_SECONDS,
      description: `How long the present secret stays valid; ${DEFAULT_OVERLAP_SECONDS} if absent`,
    },
  },
} as const;

const patchBody = (maxRateLimit: number) =>
  ({
    title: 'KeyChange',
    examples: [{ label: 'research agent', budget: { amount: 2 } }],
    type: 'object',
    additionalProperties: false,
    minProperties: 1,
    properties: CHANGED_LIMITS(maxRateLimit),
  }) as const;
type PatchBody = FromSchema<ReturnType<typeof patchBody>>;

const KEY_RECORD = record('Key', LISTED_KEY.schemas, LISTED_KEY);
export const KEYS = json(
  'One page of keys',
  record('Keys', { keys: list(KEY_RECORD, 'Newest first'), next_cursor: orNull(TEXT) }),
  { keys: [LISTED_KEY.example], next_cursor: null },
);
const ROTATED = record('RotatedKey', {
  key_id: KEY_ID,
  secret: KEY.secret.schema,
  previous_secret_expires_at: KEY.previous_secret_expires_at.schema,
});
const REVOKED = record('RevokedKey', { key_id: KEY_ID, status: { type: 'string', const: 'revoked' } });

const KEY_PARAM = { key_id: { description: 'The key', schema: KEY_ID, example: EXAMPLE.keyId } };
const NOT_STORED = { 'Cache-Control': CACHE_CONTROL('no-store') };

/** The routes of docs/api.md, 'Keys'. */
export function keysRoutes(deps: KeysRoutesDeps): Route[] {
  const { keys } = deps;
  return [
    {
      method: 'POST',
      path: '/api/v1/keys',
      summary:
        'Without a key: open an account with its first key. With a key: make a child key, or with a role another key of the account',
      access: 'optional',
      body: createBody(deps.maxRateLimit),
      requestHeaders: {
        'X-Admin-Bootstrap': {
          description: 'ADMIN_BOOTSTRAP_TOKEN of the operator, to open an admin account where it is set',
          schema: { type: 'string' },
        },
      },
      responses: {
        201: json('The key', record('CreatedKey', NEW_KEY.schemas, NEW_KEY), NEW_KEY.example, NOT_STORED),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<CreateBody>) => {
        const { caller } = request;
        const created =
          caller.kind === 'key' ? await addKey(deps, caller.key, request) : await openAccount(deps, request);
        return { status: 201, body: NEW_KEY.json(created), headers: NO_STORE };
      },
    },
    {
      method: 'GET',
      path: '/api/v1/keys',
      summary: "The keys of the caller's account, newest first, or those below a child key; never their secrets",
      access: ROLES,
      forChildren: true,
      bucket: 'reads',
      query: LIST_QUERY,
      responses: { 200: KEYS },
      handle: (request: ApiRequest<undefined, ListQuery>) => listKeys(keys, keyOf(request.caller), request.query),
    },
    {
      method: 'GET',
      path: '/api/v1/keys/me',
      summary: 'The key that sends this request',
      access: ROLES,
      forChildren: true,
      bucket: 'reads',
      forSuspended: true,
      responses: {
        200: json(
          'The key',
          record(
            'OwnKey',
            {
              ...OWN_KEY.schemas,
              operator_keys: list(
                record('OperatorKey', OPERATOR_KEY.schemas),
                `Active keys of the account that an operator issued, newest first; at most ${MAX_OPERATOR_KEYS}; none for a child key`,
              ),
            },
            OWN_KEY,
          ),
          { ...OWN_KEY.example, operator_keys: [OPERATOR_KEY.example] },
        ),
      },
      handle: (request) => describeCaller(deps, keyOf(request.caller)),
    },
    {
      method: 'POST',
      path: '/api/v1/keys/:key_id/rotate',
      summary: 'Give a key a new secret under the same id; the old secret stays valid for overlap_seconds',
      access: ROLES,
      forChildren: true,
      bucket: 'control',
      body: ROTATE_BODY,
      params: KEY_PARAM,
      responses: {
        200: json(
          'The new secret',
          ROTATED,
          { key_id: EXAMPLE.keyId, secret: EXAMPLE.secret, previous_secret_expires_at: EXAMPLE.time },
          NOT_STORED,
        ),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<FromSchema<typeof ROTATE_BODY> | undefined>) => {
        const key = await manageableKey(keys, request);
        const keyId = key.key_id;
        const overlapSeconds = request.body?.overlap_seconds ?? DEFAULT_OVERLAP_SECONDS;
        const record = ifAct(request, key, (tx, { previousExpiresAt }: { previousExpiresAt: Date | null }) =>
          recordAct(tx, keyAct(request, 'key.rotate', key, null, { previous_secret_expires_at: previousExpiresAt })),
        );
        const rotated = await keys.rotate(keyId, overlapSeconds, record);
        if (rotated === null) throw new ApiError('conflict', 'This key is revoked: create a new one.');
        const previous = rotated.previousExpiresAt?.toISOString() ?? null;
        const body = { key_id: keyId, secret: rotated.secret, previous_secret_expires_at: previous };
        return { status: 200, body, headers: NO_STORE };
      },
    },
    {
      method: 'DELETE',
      path: '/api/v1/keys/:key_id',
      summary: 'Revoke a key: the very next request with it is refused',
      access: ROLES,
      forChildren: true,
      bucket: 'control',
      params: KEY_PARAM,
      responses: {
        200: json('It is revoked, now or before', REVOKED, { key_id: EXAMPLE.keyId, status: 'revoked' }),
      },
      errors: ['not_found'],
      handle: async (request) => {
        const key = await manageableKey(keys, request);
        const record = ifAct(request, key, (tx) =>
          recordAct(tx, keyAct(request, 'key.revoke', key, { status: 'active' }, { status: 'revoked' })),
        );
        await keys.revoke(key.key_id, record);
        return { status: 200, body: { key_id: key.key_id, status: 'revoked' } };
      },
    },
    {
      method: 'PATCH',
      path: '/api/v1/keys/:key_id',
      summary: 'Change the label or the limits of a key; null removes a limit',
      access: ROLES,
      forChildren: true,
      body: patchBody(deps.maxRateLimit),
      params: KEY_PARAM,
      responses: {
        200: json('The key as it is now', KEY_RECORD, { ...LISTED_KEY.example, rate_limit: 120 }),
      },
      errors: ['not_found', 'conflict'],
      handle: async (request: ApiRequest<PatchBody>) => {
        const key = await manageableKey(keys, request);
        const change = changeOf(request.body);
        checkChange(keyOf(request.caller), key, change);
        const record = ifAct(request, key, (tx, { before, after }: ChangedKey) =>
          recordAct(tx, keyAct(request, 'key.change', key, keyChanges(before, after), keyChanges(after, before))),
        );
        await keys.change(key.key_id, change, record);
        const now = await keys.find(key.key_id);
        if (now === null) throw unauthorizedError();
        return { status: 200, body: LISTED_KEY.json(now) };
      },
    },
  ];
}

function addKey(deps: KeysRoutesDeps, by: KeyRecord, request: ApiRequest<CreateBody>): Promise<CreatedKey> {
  return request.body.role === undefined
    ? addChild(deps, by, request.body)
    : addRoot(deps, by, request, request.body.role);
}

async function addChild({ keys }: KeysRoutesDeps, by: KeyRecord, body: CreateBody): Promise<CreatedKey> {
  const { owner_id: ownerId, account_id: accountId } = body;
  if (accountId !== undefined && accountId !== by.accountId) {
    throw new ApiError('invalid_request', 'account_id: a child key belongs to the account of the key that makes it.');
  }
  if (ownerId !== undefined && ownerId !== by.ownerId) throw otherOwnerError();
  return keys.createChild(by.keyId, newChildOf(body));
}

/** Adds a key without a parent to the caller's account or, for an admin, to any account. */
async function addRoot(
  deps: KeysRoutesDeps,
  by: KeyRecord,
  request: ApiRequest<CreateBody>,
  role: Role,
): Promise<CreatedKey> {
  const { body } = request;
  if (isChild(by)) throw new ApiError('forbidden', 'A child key makes child keys only: leave the role out.');
  refuseLimits(body);
  if (!roleCovers(by.role, role)) {
    throw new ApiError('forbidden', `A ${by.role} key cannot create a key with the role ${role}.`);
  }
  const accountId = body.account_id ?? by.accountId;
  if (accountId !== by.accountId && by.role !== 'admin') {
    throw new ApiError('forbidden', 'account_id: only an admin key may name another account.');
  }
  const record = ifAct(request, { account_id: accountId, role }, (tx, key: CreatedKey) =>
    recordAct(tx, keyAct(request, 'key.create', key, null, { role: key.role })),
  );
  const byOperator = accountId !== by.accountId;
  const key = { accountId, role, byOperator, label: body.label ?? null, ownerId: body.owner_id ?? null };
  const created = await deps.keys.addKey(key, record);
  if (created === null) throw new ApiError('not_found', 'account_id: there is no such account.');
  return created;
}

/** Only child keys have limits that are stated when they are made. */
function refuseLimits(body: CreateBody): void {
  const limit = Object.keys(NEW_LIMITS(1)).find((name) => name in body);
  if (limit === undefined) return;
  throw new ApiError(
    'invalid_request',
    `${limit}: only child keys have it. A child key is made with a key, and without role.`,
  );
}

async function openAccount(deps: KeysRoutesDeps, request: ApiRequest<CreateBody>): Promise<CreatedKey> {
  // There was nobody before this key, so it counts as its own maker.
  const recordAdmin: Alongside<CreatedKey> = (tx, key) =>
    recordAct(
      tx,
      adminAct(actorOf({ keyId: key.key_id, accountId: key.account_id }, request.requestId), key.account_id),
    );
  const { owner_id: ownerId, role, account_id: accountId, label = null } = request.body;
  if (ownerId === undefined) throw new ApiError('invalid_request', 'owner_id: is needed without a key.');
  if (role === undefined) throw new ApiError('invalid_request', 'role: is needed without a key.');
  refuseLimits(request.body);
  const account = { ownerId, role, label };
  if (accountId !== undefined) throw new ApiError('forbidden', 'account_id: only an admin key may name an account.');
  if (role !== 'admin') return deps.keys.createAccountWithKey(account, openerOf(deps, request));
  if (deps.adminBootstrapToken === null) {
    // The first to reach a new gateway becomes its admin. That must not be a page that somebody near the gateway happens to visit.
    refuseForeignPage(request, 'A web page of another origin cannot create the first admin.');
    const created = await deps.keys.createFirstAdmin(account, recordAdmin);
    if (created !== null) return created;
    throw new ApiError('forbidden', 'An admin exists already: creating another requires an admin key.');
  }
  const token = request.header('x-admin-bootstrap');
  // The digests are compared, not the tokens: all digests have the same length, so the comparison does not reveal the length
  // of the configured token.
  if (token === undefined || !equalConstantTime(hashSecret(token), hashSecret(deps.adminBootstrapToken))) {
    throw new ApiError('forbidden', 'Creating an admin requires a valid X-Admin-Bootstrap header.');
  }
  return deps.keys.createAccountWithKey(account, null, recordAdmin);
}

const publicInternet = new AddressPolicy([]);

/**
 * The address against whose limit a new account counts. Only public addresses have a limit: behind 127.0.0.1 or 10.0.0.1 is the
 * operator, or a proxy that TRUSTED_PROXY_HOPS does not count, and with it everybody.
 */
function openerOf({ maxAccountsPerAddress }: KeysRoutesDeps, { address }: ApiRequest): Opener | null {
  const isPublic = address !== null && publicInternet.permits(address.replace('/64', ''));
  return isPublic && maxAccountsPerAddress > 0 ? { address, maxPerDay: maxAccountsPerAddress } : null;
}

async function listKeys(keys: Keys, by: KeyRecord, query: ListQuery): Promise<ApiResponse> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const after = query.cursor ?? null;
  const below = isChild(by) ? by.keyId : null;
  const last = after !== null && isKeyId(after) ? await keys.find(after) : null;
  if (after !== null && (last?.account_id !== by.accountId || (below !== null && !last.ancestors.includes(below)))) {
    throw new ApiError('invalid_request', 'cursor: not issued by this list.');
  }
  const found = await keys.list(by.accountId, below, after, limit + 1);
  const page = found.slice(0, limit);
  const nextCursor = found.length > limit ? (page.at(-1)?.key_id ?? null) : null;
  return { status: 200, body: { keys: page.map(LISTED_KEY.json), next_cursor: nextCursor } };
}

async function describeCaller(deps: KeysRoutesDeps, by: KeyRecord): Promise<ApiResponse> {
  const [key, activity, operatorKeys] = await Promise.all([
    deps.keys.find(by.keyId),
    deps.readActivity(by.keyId),
    isChild(by) ? [] : deps.keys.listOfOperator(by.accountId, MAX_OPERATOR_KEYS),
  ]);
  if (key === null) throw unauthorizedError();
  const own = OWN_KEY.json({ ...key, last_used_at: activity.lastUsedAt, total_spent: activity.totalSpentMicros });
  return { status: 200, body: { ...own, operator_keys: operatorKeys.map(OPERATOR_KEY.json) } };
}
