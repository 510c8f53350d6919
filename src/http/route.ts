import type { FromSchema } from 'json-schema-to-ts';
import type { ErrorCode } from '../errors.ts';
import type { KeyBucket } from '../gate/gate.ts';
import type { Caller, Role } from '../keys/caller.ts';
import type { JsonSchema } from '../platform/schemas.ts';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The type of values that pass a schema. The schema must be `as const`. */
export type { FromSchema, JsonSchema };

/**
 * The query of pages that people link to, and of health checks. Parameters that others add, such as a cache-buster, are ignored.
 */
export const ANY_QUERY: JsonSchema = { type: 'object', additionalProperties: true, properties: {} };

/** The request as a route's handler gets it: already authenticated, rate limited and validated. */
export type ApiRequest<Body = unknown, Query = unknown> = {
  readonly method: Method;
  /** Path parameters by name, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Query parameters after validation and coercion by the route's `query` schema. */
  readonly query: Query;
  /** The JSON body after validation by the route's `body` schema; undefined if the route has no such schema. */
  readonly body: Body;
  /** A request header by lower-case name, or undefined. */
  readonly header: (name: string) => string | undefined;
  readonly caller: Caller;
  /** The caller's address for limits (see src/http/address.ts); null if the caller had left before anybody read it. */
  readonly address: string | null;
  readonly requestId: string;
};

export type ApiResponse = {
  readonly status: number;
  /** Text, bytes and pieces are sent as they are, and `headers` must state their `Content-Type`. Any other value is sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * A body that may be too long to be made at once, without a declared length. The next piece is requested when the caller has room
 * for it. A piece has at most a few hundred kilobytes.
 */
export class BodyInPieces {
  readonly pieces: AsyncIterable<Uint8Array>;

  constructor(pieces: AsyncIterable<Uint8Array>) {
    this.pieces = pieces;
  }
}

/** A parameter or a header, for the OpenAPI document. */
export type Described = { readonly description: string; readonly schema: JsonSchema; readonly example?: unknown };

/** One kind of response of a route. The OpenAPI document shows it, and tests compare each response of that status with it. */
export type ResponseDescription = {
  readonly description: string;
  /** By media type; absent: no body. */
  readonly content?: Readonly<Record<string, { readonly schema: JsonSchema; readonly example: unknown }>>;
  /** Headers besides those of every response. */
  readonly headers?: Readonly<Record<string, Described & { readonly optional?: true }>>;
};

/**
 * Who may use a route. 'anyone': no key is needed; a request with a valid key still counts against that key's rate limit.
 * 'optional': no key is needed, but a key that is sent must be valid. 'cookie': the cookie of a session is needed, whose key `holder` finds.
 * A list: a valid key with one of these roles is needed; an admin key passes every list.
 */
type Access = 'anyone' | 'optional' | 'cookie' | readonly Role[];

export type Route = {
  readonly method: Method;
  /** `/api/v1/keys/:key_id`: literal segments and `:name` parameters. */
  readonly path: string;
  readonly summary: string;
  /** A page for people, which is not in the OpenAPI document. `responses` may be empty then. */
  readonly isPage?: true;
  readonly access: Access;
  /**
   * Finds the key of a caller who shows a cookie and no key; its handler decides what a caller without a session gets.
   *
   * @param mayLoad  called before Postgres is asked; when it returns false, the cookie counts as wrong
   */
  readonly holder?: (request: Pick<ApiRequest, 'method' | 'header'>, mayLoad: () => boolean) => Promise<string | null>;
  /**
   * Requests to this route take no token from a rate limit's bucket, because health checks must answer whatever else is broken.
   */
  readonly unmetered?: true;
  /**
   * The token bucket that a request with a valid key draws on; absent: `own`. Instead of `own` and `reads`, a request with a bearer
   * draws on `person`.
   */
  readonly bucket?: Extract<KeyBucket, 'reads' | 'control'>;
  /** A child key may use this route too. It then shows and changes nothing that belongs to the keys above or beside that one. */
  readonly forChildren?: true;
  /** A suspended account may use this route too. Such a request draws on the bucket of its address. */
  readonly forSuspended?: true;
  /** The handler asks no store, so it must not wait for the permits of those that do (`PagePermits`). */
  readonly fromMemory?: true;
  /**
   * The handler only asks other routes (`Api.ask`), which wait for their own permits. If it had one too, it could wait for itself.
   */
  readonly asksApi?: true;
  readonly query?: JsonSchema;
  readonly body?: JsonSchema;
  /** The handler gets the body's bytes as they were sent, in one of these media types. `body` then only describes them. */
  readonly rawBody?: readonly string[];
  /** What the OpenAPI document says about each `:name` in the path. */
  readonly params?: Readonly<Record<string, Described>>;
  /** Request headers that this route reads, besides those that carry a key. */
  readonly requestHeaders?: Readonly<Record<string, Described>>;
  /** By status: all responses except errors. */
  readonly responses: Readonly<Record<number, ResponseDescription>>;
  /** For an operators' list: the array in its JSON whose entries are the rows of its CSV file (src/routes/admin/in-csv.ts). */
  readonly csvRows?: string;
  /** Error codes that this route's own code gives, besides those that its `access` and its schemas can give. */
  readonly errors?: readonly ErrorCode[];
  /** Maximum bytes of the body; absent: 64 KiB. */
  readonly maxBodyBytes?: number;
  /**
   * Written as a method, so that a handler's parameter may have the types of its own schemas (`FromSchema`): parameters of function
   * properties may not be narrower.
   */
  handle(request: ApiRequest): Promise<ApiResponse>;
};
