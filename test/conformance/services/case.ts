/** A hostile service's answer, what the caller sees of it, and what happens to the money. Strings are latin1 bytes. */
export type ServiceCase = {
  readonly name: string;
  /** `GET` unless stated. */
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly says: string;
  /** What the service does after its answer; `stay`: it keeps the connection open and is silent. */
  readonly ends: 'close' | 'reset' | 'stay';
  /** The service answers before it has read the request body, which the caller is still sending. */
  readonly early?: true;
  readonly sees: Sees;
};

/** Outcomes as in docs/design.md, 'Failure table'. 'cut': the caller can see that the response is not whole. */
export type Sees =
  | { readonly status: 502; readonly money: 'refunded:upstream_error' }
  | { readonly status: 504; readonly money: 'refunded:upstream_timeout' }
  | { readonly status: 'cut'; readonly money: 'refunded:upstream_cut' }
  | {
      readonly status: number;
      readonly body?: string;
      readonly bodyBytes?: number;
      readonly money: 'completed' | 'refunded:upstream_5xx';
      /** Headers the caller must have, by value, or must not have. */
      readonly headers?: Readonly<Record<string, string | null>>;
    };

export const FAILED: Sees = { status: 502, money: 'refunded:upstream_error' };
export const SLOW: Sees = { status: 504, money: 'refunded:upstream_timeout' };
export const CUT: Sees = { status: 'cut', money: 'refunded:upstream_cut' };
