import type { Listing, ListingFields } from '../catalog/listing.ts';
import type { Shown } from '../catalog/listing-fields.ts';
import {
  CREDENTIAL_HEADERS,
  headerNameFault,
  headerValueFault,
  MAX_HEADER_VALUE_LENGTH,
  MAX_UPSTREAM_HEADERS,
  MAX_UPSTREAM_HEADERS_LENGTH,
  originOf,
  storedHeaders,
} from '../catalog/listing-secrets.ts';
import { ApiError } from '../errors.ts';
import type { FromSchema } from '../http/route.ts';
import { hasCredentials } from '../keys/credentials.ts';
import type { ServiceSecrets } from '../secrets/service-secrets.ts';
import { type AddressPolicy, maySendSecrets } from '../upstream/index.ts';

/** The fields of a listing that have to do with secrets, for the bodies of POST and PATCH /services. */
export const SECRET_FIELDS = {
  upstream_headers: {
    type: 'object',
    writeOnly: true,
    maxProperties: MAX_UPSTREAM_HEADERS,
    additionalProperties: { type: 'string', minLength: 1, maxLength: MAX_HEADER_VALUE_LENGTH },
    description: 'Headers that the gateway adds to each call, such as the API key of the service. Replaces all of them',
  },
  signed: { type: 'boolean', description: 'Each call carries a signature (RFC 9421) of the gateway' },
  forward_headers: {
    type: 'array',
    maxItems: CREDENTIAL_HEADERS.length,
    uniqueItems: true,
    items: { type: 'string', enum: [...CREDENTIAL_HEADERS] },
    description: 'Credential headers of the caller that the service asks for. Each call has to agree by X-ACF-Forward',
  },
} as const;
type SecretFields = FromSchema<{ readonly type: 'object'; readonly properties: typeof SECRET_FIELDS }>;

/** `Listing.forwardHeaders` of the field in a body. */
export const forwardHeadersOf = (names: readonly string[]): string | null => (names.length === 0 ? null : names.join());

type Before = Pick<Listing, 'id' | 'endpoint' | 'upstreamHeaders' | 'signingKeys'>;
type SecretsChange = {
  readonly fields: Partial<Pick<ListingFields, 'upstreamHeaders' | 'signingKeys'>>;
  /** Fields of the response to this request, and of no other. */
  readonly once: NonNullable<Shown['once']>;
};

/** Whether a change of these fields depends on what the listing has now. */
export const touchesSecrets = (body: SecretFields & { readonly endpoint?: string }): boolean =>
  body.endpoint !== undefined || body.upstream_headers !== undefined || body.signed !== undefined;

/**
 * What a request makes of the secrets of a listing. Throws `invalid_request` naming the field, and never a value.
 *
 * @param before  the listing as it is; a new one with its endpoint and without secrets
 */
export function changeSecrets(
  body: SecretFields & { readonly endpoint?: string },
  before: Before,
  { secrets, addresses }: { readonly secrets: ServiceSecrets; readonly addresses: AddressPolicy },
): SecretsChange {
  const endpoint = body.endpoint ?? before.endpoint;
  const headers = changeHeaders(body.upstream_headers, before, endpoint, { secrets, addresses });
  const signing = changeSigning(body.signed, before, secrets);
  return { fields: { ...headers.fields, ...signing.fields }, once: { ...headers.once, ...signing.once } };
}

const UNCHANGED: SecretsChange = { fields: {}, once: {} };

/** The headers were meant for the server at the old endpoint. The server at another origin may be run by somebody else. */
function changeHeaders(
  given: SecretFields['upstream_headers'],
  before: Before,
  endpoint: string,
  { secrets, addresses }: { readonly secrets: ServiceSecrets; readonly addresses: AddressPolicy },
): SecretsChange {
  if (given === undefined) {
    const keeps = before.upstreamHeaders === null || originOf(endpoint) === originOf(before.endpoint);
    if (keeps) return UNCHANGED;
    const forgotten = storedHeaders(before.upstreamHeaders).map(([name]) => name);
    return { fields: { upstreamHeaders: null }, once: { forgotten_upstream_headers: forgotten } };
  }
  const headers = readHeaders(given);
  if (headers.length === 0) return { fields: { upstreamHeaders: null }, once: {} };
  refuseWithoutKey('upstream_headers', secrets);
  if (!maySendSecrets(endpoint, addresses)) {
    throw invalid('upstream_headers', 'needs an https endpoint. Otherwise anybody on the way could read the values');
  }
  return { fields: { upstreamHeaders: secrets.sealHeaders({ id: before.id, endpoint }, headers) }, once: {} };
}

/** Names in lower case, as they are sent and shown. */
function readHeaders(given: Readonly<Record<string, string>>): (readonly [name: string, value: string])[] {
  const seen = new Set<string>();
  let length = 0;
  const headers = Object.entries(given).map(([name, value]) => {
    const nameFault = headerNameFault(name);
    if (nameFault !== null) throw invalid('upstream_headers', nameFault);
    const valueFault = headerValueFault(value);
    if (valueFault !== null) throw invalid(`upstream_headers.${name}`, valueFault);
    if (hasCredentials(value)) throw invalid(`upstream_headers.${name}`, 'must not contain an API key of Tollgate');
    const lower = name.toLowerCase();
    const folded = lower.replaceAll('_', '-');
    if (seen.has(folded)) throw invalid(`upstream_headers.${name}`, 'is there twice, in another spelling');
    seen.add(folded);
    length += name.length + value.length;
    return [lower, value] as const;
  });
  if (length > MAX_UPSTREAM_HEADERS_LENGTH) {
    throw invalid(
      'upstream_headers',
      `names and values together must have at most ${MAX_UPSTREAM_HEADERS_LENGTH} characters`,
    );
  }
  return headers;
}

function changeSigning(signed: boolean | undefined, before: Before, secrets: ServiceSecrets): SecretsChange {
  if (signed === undefined || signed === (before.signingKeys !== null)) return UNCHANGED;
  return signed ? newSigningSecret(before, secrets) : { fields: { signingKeys: null }, once: {} };
}

/** Makes a signing key for a listing, in place of the one that it has. */
export function newSigningSecret(before: Before, secrets: ServiceSecrets): SecretsChange {
  refuseWithoutKey('signed', secrets);
  const { key, stored } = secrets.newSigningKey(before.id, before.signingKeys, Date.now());
  return { fields: { signingKeys: stored }, once: { signing_secret: key.secret } };
}

function refuseWithoutKey(field: string, { canSeal }: ServiceSecrets): void {
  if (!canSeal) throw invalid(field, 'this gateway keeps no secrets: its operator has not set SECRETS_KEY');
}

const invalid = (field: string, what: string): ApiError => new ApiError('invalid_request', `${field}: ${what}.`);
