import type { Caller, Role } from '../keys/caller.ts';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A JSON Schema (draft-07). ajv compiles it at start, and the OpenAPI document contains the same object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

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
  readonly requestId: string;
};

export type ApiResponse = {
  readonly status: number;
  /** A string is sent as it is, and `headers` must state its `Content-Type`. Any other value is sent as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * Who may use a route. 'anyone': no key is needed; a request with a valid key still counts against that key's rate limit.
 * 'optional': no key is needed, but a key that is sent must be valid. A list: a valid key with one of these roles is needed;
 * an admin key passes every list.
 */
export type Access = 'anyone' | 'optional' | readonly Role[];

export type Route = {
  readonly method: Method;
  /** `/api/v1/keys/:key_id`: literal segments and `:name` parameters. */
  readonly path: string;
  readonly summary: string;
  readonly access: Access;
  /**
   * Requests to this route take no token from a rate limit's bucket, because health checks must answer whatever else is broken.
   */
  readonly unmetered?: true;
  readonly query?: JsonSchema;
  readonly body?: JsonSchema;
  /** The handler gets the bytes of the body as they came. `body` then only describes them. */
  readonly rawBody?: true;
  /** Maximum bytes of the body; absent: 64 KiB. */
  readonly maxBodyBytes?: number;
  // biome-ignore lint/suspicious/noExplicitAny: each route states the shape its own schemas enforce
  readonly handle: (request: ApiRequest<any, any>) => Promise<ApiResponse>;
};
