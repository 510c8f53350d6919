import type { Caller, Role } from '../keys/caller.ts';

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A JSON Schema (draft-07), checked by ajv at start; the same object goes into the OpenAPI document. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a route handler gets: a request that is already authenticated, rate limited and validated. */
export type ApiRequest<Body = unknown, Query = unknown> = {
  readonly method: Method;
  /** Path parameters by name, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Query parameters after validation and coercion by the route's `query` schema. */
  readonly query: Query;
  /** The JSON body after validation by the route's `body` schema; undefined where there is none. */
  readonly body: Body;
  /** A request header by lower-case name, or undefined. */
  readonly header: (name: string) => string | undefined;
  readonly caller: Caller;
  readonly requestId: string;
};

export type ApiResponse = {
  readonly status: number;
  /** Sent as JSON, unless it is a string: then as it is, with the `Content-Type` among the headers. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
};

/**
 * Who may call a route. 'anyone': no key needed (a valid one still counts by key). 'optional': no key needed, but one that
 * is sent must be valid. A list: a valid key with one of these roles (admin is implied everywhere).
 */
export type Access = 'anyone' | 'optional' | readonly Role[];

export type Route = {
  readonly method: Method;
  /** `/api/v1/keys/:key_id`: literal segments and `:name` parameters. */
  readonly path: string;
  readonly summary: string;
  readonly access: Access;
  /** Takes no token: health checks must answer whatever else is broken. */
  readonly unmetered?: true;
  readonly query?: JsonSchema;
  readonly body?: JsonSchema;
  // biome-ignore lint/suspicious/noExplicitAny: each route states the shape its own schemas enforce
  readonly handle: (request: ApiRequest<any, any>) => Promise<ApiResponse>;
};
