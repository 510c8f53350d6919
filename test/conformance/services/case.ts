/** One thing a hostile service answers, what the caller sees of it, and what becomes of the money. Octets are latin1. */
export type ServiceCase = {
  readonly name: string;
  /** `GET` unless stated. */
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly says: string;
  /** When it has said so. A service that stays is silent from then on. */
  readonly ends: 'close' | 'reset' | 'stay';
  /** It answers before it has read the request's body, which goes on meanwhile. */
  readonly early?: true;
  readonly sees: Sees;
};

/** Outcomes as the failure table of the design has them; 'cut': a response that visibly is not whole. */
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
