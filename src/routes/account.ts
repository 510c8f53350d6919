import { profileJson } from '../accounts/profile-acts.ts';
import type { Catalog } from '../catalog/catalog.ts';
import {
  contactFault,
  displayNameFault,
  MAX_CONTACT_LENGTH,
  MAX_DISPLAY_NAME_LENGTH,
  MAX_PROFILE_URL_LENGTH,
  type Profile,
  profileUrlFault,
} from '../catalog/providers/profile.ts';
import { selectProfiles, updateProfile } from '../catalog/providers/profiles-sql.ts';
import { ApiError, unauthorizedError } from '../errors.ts';
import type { ApiRequest, ApiResponse, FromSchema, Route } from '../http/route.ts';
import { type KeyRecord, keyOf } from '../keys/caller.ts';
import { COUNT, EXAMPLE, json, orNull, record, TEXT, TIME, UUID } from '../openapi/schemas.ts';
import { timeOfId } from '../platform/ids.ts';
import type { Sql } from '../platform/postgres.ts';

const field = (maxLength: number, description: string) =>
  ({ type: ['string', 'null'], maxLength, description: `${description}; null: none` }) as const;
const PATCH_BODY = {
  title: 'ProfileChange',
  examples: [{ display_name: 'Translators & Co', contact: 'help@translate.example.com' }],
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    // Twice the number of characters, because some take two UTF-16 units. The check counts characters, without surrounding spaces.
    display_name: field(
      2 * MAX_DISPLAY_NAME_LENGTH,
      'Shown on the listings; not the name of the operator or of the gateway',
    ),
    contact: field(2 * MAX_CONTACT_LENGTH, 'How buyers reach the provider, as plain text'),
    url: field(MAX_PROFILE_URL_LENGTH, 'http or https URL of a page about the provider'),
  },
} as const;
type PatchBody = FromSchema<typeof PATCH_BODY>;

const PROVIDER_ACCOUNT = record('ProviderAccount', {
  account_id: UUID,
  owner_id: { ...TEXT, description: 'The label of the account, which buyers do not see' },
  display_name: orNull(TEXT),
  contact: orNull(TEXT),
  url: orNull(TEXT),
  since: { ...TIME, description: 'When the account was opened' },
  services: { ...COUNT, description: 'Its active listings' },
});
const EXAMPLE_ACCOUNT = {
  account_id: EXAMPLE.providerId,
  owner_id: 'translators',
  display_name: 'Translators & Co',
  contact: 'help@translate.example.com',
  url: null,
  since: EXAMPLE.time,
  services: 3,
};

type AccountRoutesDeps = {
  readonly sql: Sql;
  readonly catalog: Catalog;
  /** OPERATOR_NAME, or null. */
  readonly operatorName: string | null;
};

/** What a provider says about itself to buyers (docs/api.md, 'Who offers a service'). */
export function accountRoutes({ sql, catalog, operatorName }: AccountRoutesDeps): Route[] {
  const show = ({ accountId, ownerId }: KeyRecord, profile: Profile | null): ApiResponse => ({
    status: 200,
    body: {
      account_id: accountId,
      owner_id: ownerId,
      ...profileJson(profile),
      since: new Date(timeOfId(accountId)).toISOString(),
      services: catalog.activeOf(accountId),
    },
  });
  return [
    {
      method: 'GET',
      path: '/api/v1/accounts/me',
      summary: "What the listings of the caller's account show of it",
      access: ['provider'],
      responses: { 200: json('The account', PROVIDER_ACCOUNT, EXAMPLE_ACCOUNT) },
      handle: async ({ caller }) => {
        const key = keyOf(caller);
        return show(key, (await selectProfiles(sql, [key.accountId])).get(key.accountId) ?? null);
      },
    },
    {
      method: 'PATCH',
      path: '/api/v1/accounts/me',
      summary: "Change what the listings of the caller's account show of it",
      access: ['provider'],
      body: PATCH_BODY,
      responses: { 200: json('The account as it is now', PROVIDER_ACCOUNT, EXAMPLE_ACCOUNT) },
      handle: async ({ caller, body }: ApiRequest<PatchBody>) => {
        const key = keyOf(caller);
        const change = readChange(body, operatorName);
        const profile = await sql.begin((tx) => updateProfile(tx, key.accountId, change));
        // The account has just been closed.
        if (profile === undefined) throw unauthorizedError();
        await catalog.setProfiles(new Map([[key.accountId, profile]]));
        return show(key, profile);
      },
    },
  ];
}

function readChange(body: PatchBody, operatorName: string | null): Partial<Profile> {
  const read = (name: keyof PatchBody, faultOf: (value: string) => string | null): string | null => {
    const value = body[name]?.trim() ?? null;
    const fault = value === null ? null : faultOf(value);
    if (fault !== null) throw new ApiError('invalid_request', `${name}: ${fault}.`);
    return value;
  };
  return {
    ...(body.display_name === undefined
      ? {}
      : { displayName: read('display_name', (name) => displayNameFault(name, operatorName)) }),
    ...(body.contact === undefined ? {} : { contact: read('contact', contactFault) }),
    ...(body.url === undefined ? {} : { url: read('url', profileUrlFault) }),
  };
}
