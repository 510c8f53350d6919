import { isObject, type JsonObject, listOf, memberOf, objectOf, quoted } from './json.ts';
import type { References } from './references.ts';

/** The credentials that an operation needs. `told` is for its callers, `notes` are for its author. */
type Needs = { readonly told: string | null; readonly notes: readonly string[] };
type Scheme = {
  readonly words: string;
  /** The header that carries the credential, in lower case; null: it is carried in another way. */
  readonly header: string | null;
  /** The parameter of the query that carries the credential, or null. */
  readonly parameter: string | null;
  readonly isOfUser: boolean;
};

const NOTHING: Needs = { told: null, notes: [] };
/** Flows of OAuth 2.0 that need a user's consent. */
const USER_FLOWS = ['authorizationCode', 'implicit', 'password', 'deviceAuthorization'];
/** Maximum alternatives that are listed. */
const MAX_ALTERNATIVES = 4;
const MAX_NAMED = 4;

/**
 * What the operations of a document say about credentials. The gateway forwards none of the caller's unless the listing asks for
 * them.
 */
export class Security {
  readonly #common: unknown;
  readonly #schemes: JsonObject;
  readonly #references: References;
  readonly #addedHeaders: ReadonlySet<string>;
  readonly #addedParameters: ReadonlySet<string>;

  constructor(
    document: JsonObject,
    references: References,
    {
      addedHeaders,
      addedParameters,
    }: { readonly addedHeaders: readonly string[]; readonly addedParameters: readonly string[] },
  ) {
    this.#common = document.security;
    this.#schemes = objectOf(objectOf(document.components).securitySchemes);
    this.#references = references;
    this.#addedHeaders = new Set(addedHeaders);
    this.#addedParameters = new Set(addedParameters);
  }

  /** An operation's own requirements replace those of the document. One of the alternatives is enough. */
  of({ security = this.#common }: JsonObject): Needs {
    const alternatives = listOf(security).map((one) => Object.keys(objectOf(one)).map((name) => this.#scheme(name)));
    if (alternatives.length === 0) return NOTHING;
    const missing = alternatives.map((schemes) => schemes.filter((scheme) => !this.#isAdded(scheme)));
    if (missing.some((schemes) => schemes.length === 0)) return NOTHING;
    const words = missing.slice(0, MAX_ALTERNATIVES).map((schemes) =>
      some(
        schemes.map((one) => one.words),
        ' and ',
      ),
    );
    const how = `${words.join(', or ')}${missing.length > MAX_ALTERNATIVES ? ', or others' : ''}`;
    const isOfUser = missing.every((schemes) => schemes.some((one) => one.isOfUser));
    const what = isOfUser ? "a user's own credentials" : 'credentials';
    const headers = [...new Set(missing.flat().flatMap(({ header }) => header ?? []))];
    const parameters = [...new Set(missing.flat().flatMap(({ parameter }) => parameter ?? []))];
    return {
      told: `Needs ${what}: ${how}.`,
      notes: [
        `needs ${what}, as it says: ${how}. The gateway passes on none of the caller's${remedy(headers, parameters, isOfUser)}`,
      ],
    };
  }

  #isAdded({ header, parameter }: Scheme): boolean {
    if (parameter !== null) return this.#addedParameters.has(parameter);
    return header !== null && this.#addedHeaders.has(header);
  }

  #scheme(name: string): Scheme {
    const found = this.#references.follow(memberOf(this.#schemes, name));
    if ('fault' in found) return { words: quoted(name), ...ELSEWHERE };
    const { type, in: location, name: parameter, scheme, flows } = found.object;
    const told = (how: string): string => `${quoted(name)} (${how})`;
    if (type === 'apiKey') {
      const carrier = {
        header: location === 'header' ? String(parameter).toLowerCase() : null,
        parameter: location === 'query' ? String(parameter) : null,
      };
      return { words: told(`${quoted(String(location))} ${quoted(String(parameter))}`), ...carrier, isOfUser: false };
    }
    if (type === 'http') return { words: told(`Authorization: ${quoted(String(scheme))}`), ...IN_AUTHORIZATION };
    if (type === 'openIdConnect') return { words: told('OpenID Connect'), ...IN_AUTHORIZATION, isOfUser: true };
    if (type === 'oauth2') {
      const isOfUser = isObject(flows) && USER_FLOWS.some((flow) => flow in flows) && !('clientCredentials' in flows);
      return { words: told('OAuth 2.0'), ...IN_AUTHORIZATION, isOfUser };
    }
    return { words: told(quoted(String(type))), ...ELSEWHERE };
  }
}

const IN_AUTHORIZATION = { header: 'authorization', parameter: null, isOfUser: false } as const;
const ELSEWHERE = { header: null, parameter: null, isOfUser: false } as const;

/** The first names, and how many more there are: a document may have any number, and each of its operations repeats them. */
const some = (all: readonly string[], by: string): string =>
  all.slice(0, MAX_NAMED).join(by) + (all.length > MAX_NAMED ? `${by}${all.length - MAX_NAMED} more` : '');

function remedy(headers: readonly string[], parameters: readonly string[], isOfUser: boolean): string {
  if (headers.length === 0) {
    const needed = some(parameters.map(quoted), ', ');
    return parameters.length === 0 ? '' : `: let the listing add them by upstream_query (${needed})`;
  }
  const names = some(headers.map(quoted), ', ');
  return isOfUser
    ? ` unless the listing asks for them: forward_headers (${names})`
    : `: let the listing add them by upstream_headers, or ask for them by forward_headers (${names})`;
}
