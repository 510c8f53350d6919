import type { Listing, ListingFields } from '../catalog/listing.ts';
import type { Shown } from '../catalog/listing-fields.ts';
import {
  CREDENTIAL_HEADERS,
  foldedParameter,
  headerNameFault,
  MAX_HEADER_VALUE_LENGTH,
  MAX_PARAMETER_VALUE_LENGTH,
  MAX_UPSTREAM_HEADERS,
  MAX_UPSTREAM_HEADERS_LENGTH,
  MAX_UPSTREAM_PARAMETERS,
  originOf,
  parameterNameFault,
  secretValueFault,
  storedPairs,
} from '../catalog/listing-secrets.ts';
import { ApiError } from '../errors.ts';
import type { FromSchema } from '../http/route.ts';
import { hasCredentials } from '../keys/credentials.ts';
import type { ServiceSecrets } from '../secrets/service-secrets.ts';
import { type AddressPolicy, maySendSecrets } from '../upstream/index.ts';

/** The fields of a listing that concern secrets, for the bodies of POST and PATCH /services. */
export const SECRET_FIELDS = {
  upstream_headers: {
    type: 'object',
    writeOnly: true,
    maxProperties: MAX_UPSTREAM_HEADERS,
    additionalProperties: { type: 'string', minLength: 1, maxLength: MAX_HEADER_VALUE_LENGTH },
    description: 'Headers that the gateway adds to each call, such as the API key of the service. Replaces all of them',
  },
  upstream_query: {
    type: 'object',
    writeOnly: true,
    maxProperties: MAX_UPSTREAM_PARAMETERS,
    additionalProperties: { type: 'string', minLength: 1, maxLength: MAX_PARAMETER_VALUE_LENGTH },
    description:
      'Parameters that the gateway adds to the query of each call, such as the API key of the service. Replaces all of them',
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

/** `Listing.forwardHeaders` for the field in a body. */
export const forwardHeadersOf = (names: readonly string[]): string | null => (names.length === 0 ? null : names.join());

type Before = Pick<Listing, 'id' | 'endpoint' | 'upstreamHeaders' | 'upstreamQuery' | 'signingKeys'>;
type Deps = { readonly secrets: ServiceSecrets; readonly addresses: AddressPolicy };
type SecretsChange = {
  readonly fields: Partial<Pick<ListingFields, 'upstreamHeaders' | 'upstreamQuery' | 'signingKeys'>>;
  /** Fields that only the response to this request has. */
  readonly once: NonNullable<Shown['once']>;
};

/** Whether a change of these fields depends on the present listing. */
export const touchesSecrets = (body: SecretFields & { readonly endpoint?: string }): boolean =>
  [body.endpoint, body.upstream_headers, body.upstream_query, body.signed].some((field) => field !== undefined);

/**
 * What a request changes in the secrets of a listing. Throws `invalid_request`, which names the field but never a value.
 *
 * @param before the present listing; for a new one, its endpoint and no secrets
 */
export function changeSecrets(
  body: SecretFields & { readonly endpoint?: string },
  before: Before,
  deps: Deps,
): SecretsChange {
  const endpoint = body.endpoint ?? before.endpoint;
  const headers = changeAdded(HEADERS, body.upstream_headers, before, endpoint, deps);
  const query = changeAdded(QUERY, body.upstream_query, before, endpoint, deps);
  const signing = changeSigning(body.signed, before, deps.secrets);
  return {
    fields: { ...headers.fields, ...query.fields, ...signing.fields },
    once: { ...headers.once, ...query.once, ...signing.once },
  };
}

const UNCHANGED: SecretsChange = { fields: {}, once: {} };

type Pair = readonly [name: string, value: string];

/** Something that the gateway adds to calls: its name, and its allowed values. */
type Added = {
  readonly field: 'upstream_headers' | 'upstream_query';
  readonly stored: 'upstreamHeaders' | 'upstreamQuery';
  readonly forgotten: 'forgotten_upstream_headers' | 'forgotten_upstream_query';
  readonly kind: Parameters<ServiceSecrets['seal']>[0];
  readonly nameFault: (name: string) => string | null;
  /** The name in the form in which it is sent and shown. */
  readonly shown: (name: string) => string;
  /** A form in which two names are the same if any server may treat them as one name. */
  readonly folded: (name: string) => string;
  /** Maximum characters of all names and values. */
  readonly maxLength: number;
};
const HEADERS: Added = {
  field: 'upstream_headers',
  stored: 'upstreamHeaders',
  forgotten: 'forgotten_upstream_headers',
  kind: 'header',
  nameFault: headerNameFault,
  shown: (name) => name.toLowerCase(),
  folded: (name) => name.toLowerCase().replaceAll('_', '-'),
  maxLength: MAX_UPSTREAM_HEADERS_LENGTH,
};
const QUERY: Added = {
  field: 'upstream_query',
  stored: 'upstreamQuery',
  forgotten: 'forgotten_upstream_query',
  kind: 'query',
  nameFault: parameterNameFault,
  shown: (name) => name,
  folded: foldedParameter,
  maxLength: Number.POSITIVE_INFINITY,
};

/** The added secrets were meant for the server at the old endpoint. The server at another origin may be run by somebody else. */
function changeAdded(
  added: Added,
  given: Readonly<Record<string, string>> | undefined,
  before: Before,
  endpoint: string,
  { secrets, addresses }: Deps,
): SecretsChange {
  const { field, stored, forgotten, kind } = added;
  if (given === undefined) {
    const keeps = before[stored] === null || originOf(endpoint) === originOf(before.endpoint);
    if (keeps) return UNCHANGED;
    return { fields: { [stored]: null }, once: { [forgotten]: storedPairs(before[stored]).map(([name]) => name) } };
  }
  const pairs = readPairs(added, given);
  if (pairs.length === 0) return { fields: { [stored]: null }, once: {} };
  refuseWithoutKey(field, secrets);
  if (!maySendSecrets(endpoint, addresses)) {
    throw invalid(
      field,
      'needs an https endpoint. Otherwise anyone between the gateway and the service could read the values',
    );
  }
  return { fields: { [stored]: secrets.seal(kind, { id: before.id, endpoint }, pairs) }, once: {} };
}

function readPairs(
  { field, nameFault, shown, folded, maxLength }: Added,
  given: Readonly<Record<string, string>>,
): Pair[] {
  const seen = new Set<string>();
  let length = 0;
  const pairs = Object.entries(given).map(([name, value]): Pair => {
    const fault = nameFault(name);
    if (fault !== null) throw invalid(field, fault);
    const valueFault = secretValueFault(value);
    if (valueFault !== null) throw invalid(`${field}.${name}`, valueFault);
    if (hasCredentials(value)) throw invalid(`${field}.${name}`, 'must not contain an API key of Tollgate');
    if (seen.has(folded(name))) throw invalid(`${field}.${name}`, 'is given twice, in two spellings');
    seen.add(folded(name));
    length += name.length + value.length;
    return [shown(name), value];
  });
  if (length > maxLength) {
    throw invalid(field, `names and values together must have at most ${maxLength} characters`);
  }
  return pairs;
}

function changeSigning(signed: boolean | undefined, before: Before, secrets: ServiceSecrets): SecretsChange {
  if (signed === undefined || signed === (before.signingKeys !== null)) return UNCHANGED;
  return signed ? newSigningSecret(before, secrets) : { fields: { signingKeys: null }, once: {} };
}

/** Makes a new signing key for a listing, which replaces the present one. */
export function newSigningSecret(before: Before, secrets: ServiceSecrets): SecretsChange {
  refuseWithoutKey('signed', secrets);
  const { key, stored } = secrets.newSigningKey(before.id, before.signingKeys, Date.now());
  return { fields: { signingKeys: stored }, once: { signing_secret: key.secret } };
}

function refuseWithoutKey(field: string, { canSeal }: ServiceSecrets): void {
  if (!canSeal) throw invalid(field, 'this gateway keeps no secrets: its operator has not set SECRETS_KEY');
}

const invalid = (field: string, what: string): ApiError => new ApiError('invalid_request', `${field}: ${what}.`);
