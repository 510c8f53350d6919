import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './schema.d.ts';

export type Api = Client<paths>;
export type Schemas = components['schemas'];

/** A failed request: the gateway's own message, and what can be done. */
export class ApiFailure extends Error {
  /** `unauthorized`, `rate_limited`, …; `network` when no answer came. */
  readonly code: string;
  /** 0 when no answer came. */
  readonly status: number;
  /** Seconds until it makes sense to ask again, if the answer said so. */
  readonly retryAfter: number | null;
  readonly requestId: string | null;
  /** The whole error object. A 402 has `required` and `balance`, for example. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    status: number,
    response: Response | null,
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    const wait = Number(response?.headers.get('Retry-After') ?? Number.NaN);
    this.retryAfter = Number.isFinite(wait) ? wait : null;
    this.requestId = response?.headers.get('X-Request-Id') ?? null;
    this.details = details;
  }
}

/** The credential that a client's requests send. */
export type Credential = {
  /** `key_id:secret` */
  readonly now: () => Promise<string>;
  /** Another credential after one was refused, for a second try. Null: there is none. */
  readonly renewed: ((refused: string) => Promise<string>) | null;
};

// Nothing is ambient: requests send no cookies and no referrer.
const NOTHING_AMBIENT = { baseUrl: '/', credentials: 'omit', referrerPolicy: 'no-referrer' } as const;

/** A typed client of this gateway's API. @param credential null for anybody */
export function apiClient(credential: Credential | null): Api {
  if (credential === null) return createClient<paths>(NOTHING_AMBIENT);
  return createClient<paths>({ ...NOTHING_AMBIENT, fetch: (request) => sent(request, credential) });
}

/** The client for sessions: only to these routes does a browser send its cookie. @param headers sent with the cookie */
export function sessionClient(headers: Readonly<Record<string, string>>): Api {
  return createClient<paths>({ ...NOTHING_AMBIENT, credentials: 'same-origin', headers });
}

async function sent(request: Request, { now, renewed }: Credential): Promise<Response> {
  const again = renewed === null ? null : request.clone();
  const shown = await now();
  request.headers.set('Authorization', `Bearer ${shown}`);
  const response = await fetch(request);
  if (response.status !== 401 || again === null || renewed === null) return response;
  again.headers.set('Authorization', `Bearer ${await renewed(shown)}`);
  return fetch(again);
}

type Answer<T> = { readonly data?: T; readonly error?: unknown; readonly response: Response };

/** A list is sent as CSV text only to code that asks for it, and that code reads it as a `Blob`. */
type DataOf<T> = [Exclude<T, string>] extends [never] ? T : Exclude<T, string>;

/**
 * The data of an answer. Throws `ApiFailure`.
 *
 *     const page = await dataOf(api.GET('/api/v1/discover', { params: { query: { q } } }));
 */
export async function dataOf<T>(asked: Promise<Answer<T>>): Promise<DataOf<NonNullable<T>>> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (cause) {
    if (cause instanceof ApiFailure || (cause instanceof DOMException && cause.name === 'AbortError')) throw cause;
    throw new ApiFailure('network', 'The gateway did not answer. Check the connection, and try again.', 0, null);
  }
  const { data, error, response } = answer;
  if (response.ok) return data as DataOf<NonNullable<T>>;
  const details = typeof error === 'object' && error !== null ? (error as Record<string, unknown>) : {};
  const message = typeof details.message === 'string' ? details.message : `The gateway answered ${response.status}.`;
  throw new ApiFailure(String(details.error ?? response.status), message, response.status, response, details);
}
