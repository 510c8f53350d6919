// Makes a call and passes on its response as it arrives. Tested by test/web/service.test.ts and test/web/call-body.test.ts.

import { BodyReader, type CallBody } from './body.ts';

export type CallRequest = {
  readonly method: string;
  /** Path and query on this gateway. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
};

/** The progress of a call. */
export type CallState = {
  readonly phase: 'waiting' | 'receiving' | 'done' | 'cancelled' | 'broken';
  /** Time since the request was sent. */
  readonly ms: number;
  readonly response: CallResponse | null;
  readonly body: CallBody | null;
};

export type CallResponse = {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** US dollars, as the gateway wrote them; null if the call was refused before its admission. */
  readonly amount: string | null;
  /** Whether the amount is the hold of a call priced by use, of which a part may come back. */
  readonly isHeld: boolean;
  readonly balance: string | null;
  readonly isFreeTier: boolean;
  /** Free calls of the service that the account has left; null if calls take none. */
  readonly freeLeft: number | null;
  readonly usageId: string | null;
  readonly retryAfter: number | null;
};

/** Milliseconds between two updates of a growing body: the eye sees no more, and a fast stream has thousands of pieces. */
const SHOW_EVERY_MS = 60;

/** As in every request of these pages, nothing is ambient, and nothing is cached. */
const NOTHING_AMBIENT = {
  credentials: 'omit',
  referrerPolicy: 'no-referrer',
  cache: 'no-store',
  redirect: 'manual',
} as const;

/**
 * @param renewed the same request with another credential, after the gateway has refused the first one; null: there is no other
 * @param onState called at once with the head of the response, then with its growing body, and at the end
 * @param signal   cancels the call
 */
export async function send(
  request: CallRequest,
  renewed: (() => Promise<CallRequest>) | null,
  onState: (state: CallState) => void,
  signal: AbortSignal,
): Promise<CallState> {
  const startedAt = performance.now();
  let state: CallState = { phase: 'waiting', ms: 0, response: null, body: null };
  const become = (changes: Partial<CallState>): void => {
    state = { ...state, ...changes, ms: performance.now() - startedAt };
    onState(state);
  };
  become({});
  let reader: BodyReader | null = null;
  let picture: ReturnType<typeof setTimeout> | null = null;
  try {
    const response = await answered(request, renewed, signal);
    const taker = new BodyReader(response.headers.get('Content-Type') ?? '');
    reader = taker;
    become({ phase: 'receiving', response: headOf(response), body: taker.shown() });
    const pieces = response.body?.getReader();
    for (let next = await pieces?.read(); next !== undefined && !next.done; next = await pieces?.read()) {
      taker.take(next.value);
      picture ??= setTimeout(() => {
        picture = null;
        become({ body: taker.shown() });
      }, SHOW_EVERY_MS);
    }
    if (picture !== null) clearTimeout(picture);
    become({ phase: 'done', body: taker.end() });
  } catch {
    if (picture !== null) clearTimeout(picture);
    become({ phase: signal.aborted ? 'cancelled' : 'broken', body: reader?.shown() ?? null });
  }
  return state;
}

async function answered(
  request: CallRequest,
  renewed: (() => Promise<CallRequest>) | null,
  signal: AbortSignal,
): Promise<Response> {
  const ask = ({ target, method, headers, body }: CallRequest): Promise<Response> =>
    fetch(target, { ...NOTHING_AMBIENT, method, headers, body, signal });
  const response = await ask(request);
  // A 401 from the service itself has an amount: that call was made.
  if (response.status !== 401 || renewed === null || response.headers.get('X-ACF-Amount') !== null) return response;
  const another = await renewed().catch(() => null);
  return another === null ? response : ask(another);
}

function headOf(response: Response): CallResponse {
  const get = (name: string): string | null => response.headers.get(name);
  const numberOf = (name: string): number | null => {
    const value = Number(get(name) ?? Number.NaN);
    return Number.isFinite(value) ? value : null;
  };
  return {
    status: response.status,
    headers: [...response.headers].sort(([a], [b]) => a.localeCompare(b)),
    amount: get('X-ACF-Amount'),
    isHeld: get('X-ACF-Held') === 'true',
    balance: get('X-ACF-Balance'),
    isFreeTier: get('X-ACF-Free-Tier') === 'true',
    freeLeft: numberOf('X-ACF-Free-Left'),
    usageId: get('X-ACF-Usage-Id'),
    retryAfter: numberOf('Retry-After'),
  };
}
