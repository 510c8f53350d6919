import { tryListing, type WriteListing, writeListing } from '../accounts/listing-acts.ts';
import type { Listing, ListingPatch } from '../catalog/listing.ts';
import type { Operation, StoredOperations } from '../catalog/operations/operation.ts';
import {
  changesTerms,
  selectLatestOperations,
  selectListing,
  selectOperationsText,
  updateListing,
} from '../catalog/sql.ts';
import { ApiError, unavailableError } from '../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema } from '../http/route.ts';
import type { Sql } from '../platform/postgres.ts';
import type { ServiceSecrets } from '../secrets/service-secrets.ts';
import type { AddressPolicy } from '../upstream/index.ts';
import { idOf, mayManage, refusal, writerOf } from './named-service.ts';
import { mergeChanges, readOperations, withinRules } from './operations.ts';
import { type PatchBody, type PutOperationsBody, readFields, refusePageChoosingEndpoint } from './service-fields.ts';
import { changeSecrets, newSigningSecret, touchesSecrets } from './service-secrets.ts';
import { type ShowDeps, type Shown, show } from './shown-service.ts';

// Changes of a listing, and dry runs of them.

export type ChangeDeps = ShowDeps & {
  /** Decides which addresses calls may go to. */
  readonly addresses: AddressPolicy;
  readonly secrets: ServiceSecrets;
};

export const DRY_RUN_QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    dry_run: { type: 'boolean', default: false, description: 'true: answers the same, and changes nothing' },
  },
} as const;
export type DryRunQuery = FromSchema<typeof DRY_RUN_QUERY>;

/** What a request changes in a listing, given its present state. */
type Changed = {
  readonly patch: ListingPatch;
  /** The patch depends on the listing's former state, so it counts only if nobody has changed the listing meanwhile. */
  readonly isBased: boolean;
  readonly once?: NonNullable<Shown['once']> | undefined;
};

/** How many times a change reads the listing while others change it, too. After that the request is refused. */
const MAX_READINGS = 5;

export async function patchService(
  deps: ChangeDeps,
  request: ApiRequest<PatchBody, DryRunQuery>,
): Promise<ApiResponse> {
  const { addresses } = deps;
  refusePageChoosingEndpoint(request, addresses);
  const { status, operations } = request.body;
  const fields: ListingPatch = { ...readFields(request.body, addresses), ...(status === undefined ? {} : { status }) };
  return changeListing(deps, request, async (before) => {
    const secrets = touchesSecrets(request.body) ? changeSecrets(request.body, before, deps) : undefined;
    const merged = operations === undefined ? {} : { operations: await mergedWith(deps, before, operations) };
    const isBased = secrets !== undefined || Array.isArray(operations);
    return { patch: { ...fields, ...merged, ...secrets?.fields }, isBased, once: secrets?.once };
  });
}

/** Based on the operations that the provider wrote last, announced or not. */
async function mergedWith(
  { sql }: ChangeDeps,
  { id, protocol }: Listing,
  changes: PatchBody['operations'],
): Promise<StoredOperations | null> {
  if (changes == null) return null;
  return mergeChanges(await selectLatestOperations(sql, id), changes, protocol);
}

/** `PUT /services/{id}/operations`: replaces all operations of the listing. */
export async function putOperations(
  deps: ChangeDeps,
  request: ApiRequest<PutOperationsBody, DryRunQuery>,
): Promise<ApiResponse> {
  const { operations, only_operations: onlyOperations } = request.body;
  return changeListing(deps, request, async ({ protocol }) => ({
    patch: {
      operations: readOperations(operations, protocol),
      ...(onlyOperations === undefined ? {} : { onlyOperations }),
    },
    isBased: true,
  }));
}

export async function renewSigningSecret(deps: ChangeDeps, request: ApiRequest): Promise<ApiResponse> {
  return changeListing(deps, { ...request, query: { dry_run: false } }, async (before) => {
    if (before.signingKeys === null)
      throw new ApiError('conflict', 'Calls of this service are not signed. Change it to signed: true first.');
    if (!deps.secrets.canSeal)
      throw unavailableError(
        undefined,
        'This gateway has no SECRETS_KEY any more. Its operator has to set it again.',
        60,
      );
    const { fields, once } = newSigningSecret(before, deps.secrets);
    return { patch: fields, isBased: true, once };
  });
}

/** Applies the change to the present listing, and again if others change it meanwhile. @returns the changed listing */
export async function changeListing(
  deps: ChangeDeps,
  request: ApiRequest<unknown, DryRunQuery>,
  change: (before: Listing) => Promise<Changed>,
): Promise<ApiResponse> {
  for (let reading = 0; reading < MAX_READINGS; reading++) {
    const before = await ownListing(deps.sql, request);
    const { patch, isBased, once } = await change(before);
    const version = isBased ? before.updatedAtMicros : undefined;
    const shown = await writePatch(deps, request, before, { patch, version, once });
    if (shown === null) continue;
    return shown;
  }
  throw new ApiError(
    'conflict',
    'Other requests keep changing this listing. Nothing was changed; send this one again.',
  );
}

/** The listing from Postgres, because another gateway may just have changed it; only if the caller may manage it. */
export async function ownListing(sql: Sql, request: ApiRequest): Promise<Listing> {
  const id = idOf(request);
  const listing = await selectListing(sql, id);
  if (listing === null || listing.status === 'removed' || !mayManage(request.caller, listing))
    throw await refusal(sql, id);
  return listing;
}

type Patch = {
  readonly patch: ListingPatch;
  /** The version on which the patch is based, if any. */
  readonly version: number | undefined;
  readonly once?: NonNullable<Shown['once']> | undefined;
};

/**
 * Stores a change, or only tries it, and shows the listing. @returns null if the listing was changed or removed since it was read
 */
export async function writePatch(
  deps: ShowDeps,
  request: ApiRequest<unknown, DryRunQuery>,
  before: Listing,
  { patch, version, once = {} }: Patch,
): Promise<ApiResponse | null> {
  const noticeSeconds = changesTerms(patch) ? await deps.notice.secondsFor(before) : 0;
  const based = version === undefined ? { noticeSeconds } : { version, noticeSeconds };
  const write: WriteListing = (on, scope) => updateListing(on, before.id, patch, scope, based);
  if (request.query.dry_run) return tryOut(deps, request, before.id, write, once);
  const listing = await withinRules(writeListing(deps.sql, writerOf(request), before.id, write));
  if (listing === null) return null;
  deps.catalog.apply(listing);
  const shown = await show(deps, listing, request, { status: 200, once });
  if (patch.endpoint !== undefined) deps.watch.check(listing, 'all');
  else if (patch.healthPath !== undefined) deps.watch.check(listing, 'health');
  return shown;
}

/** The listing as it would be after the change. */
async function tryOut(
  deps: ShowDeps,
  request: ApiRequest,
  id: string,
  write: WriteListing,
  { signing_secret: _, ...once }: NonNullable<Shown['once']>,
): Promise<ApiResponse | null> {
  const tried = tryListing(deps.sql, writerOf(request), write, async (tx, listing) => ({
    listing,
    operations: JSON.parse(await selectOperationsText(tx, id)) as Operation[],
    latest: await selectLatestOperations(tx, id),
  }));
  const found = await withinRules(tried);
  if (found === null) return null;
  // The reader would cache them under the version of a row that nobody else ever sees.
  const operations = { read: async () => found.operations };
  return show({ ...deps, operations }, found.listing, request, { status: 200, latest: found.latest, once });
}
