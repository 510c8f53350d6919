import type { Schemas } from '../../api/client.ts';
import { readAmount } from '../shared/amount.ts';
import type { Key } from './tree.ts';

/** What somebody typed into the form of a key. */
export type KeyDraft = {
  readonly label: string;
  /** USD; empty: no budget. */
  readonly amount: string;
  readonly period: Period;
  readonly rateLimit: string;
  readonly maxPrice: string;
  /** Ids of services, or addresses that contain them. Empty: all services. */
  readonly services: string;
  /** `2026-11-23T14:05`, in the reader's time zone. Empty: never. */
  readonly expires: string;
};
type Period = Schemas['Budget']['period'];
export type Faults = Readonly<Partial<Record<keyof KeyDraft, string>>>;

export const PERIODS: readonly (readonly [Period, string])[] = [
  ['day', 'a day'],
  ['week', 'a week'],
  ['month', 'a month'],
  ['total', 'in all'],
];

export const EMPTY_DRAFT: KeyDraft = {
  label: '',
  amount: '',
  period: 'day',
  rateLimit: '',
  maxPrice: '',
  services: '',
  expires: '',
};

export const draftOf = (key: Key): KeyDraft => ({
  label: key.label ?? '',
  amount: key.budget === undefined ? '' : plain(key.budget.amount),
  period: key.budget?.period ?? 'day',
  rateLimit: String(key.rate_limit),
  maxPrice: key.max_price === undefined ? '' : plain(key.max_price),
  services: (key.services ?? []).join('\n'),
  expires: key.expires_at === undefined ? '' : localTime(key.expires_at),
});

/** In the form that `readAmount` reads: never `1e-6`. */
const plain = (usd: number): string => usd.toFixed(6).replace(/\.?0+$/, '');

function localTime(iso: string): string {
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;
const linesOf = (text: string): string[] => text.split(/[\s,]+/).filter((line) => line !== '');

/** What is wrong, by field. Limits that depend on the keys above are checked by the API. */
export function faultsOf({ amount, rateLimit, maxPrice, services }: KeyDraft): Faults {
  const budget = amountFault(amount, MAX_BUDGET_USD);
  const price = amountFault(maxPrice);
  const unread = linesOf(services).find((line) => !UUID.test(line));
  return {
    ...(budget === null ? {} : { amount: budget }),
    ...(price === null ? {} : { maxPrice: price }),
    ...(/^([1-9]\d{0,6})?$/.test(rateLimit.trim()) ? {} : { rateLimit: 'A whole number of at least 1.' }),
    ...(unread === undefined ? {} : { services: `This is not the id of a service: ${unread}` }),
  };
}

/** In micro-USD, a larger number is not exact in a browser. */
const MAX_BUDGET_USD = 1_000_000_000;

function amountFault(text: string, most?: number): string | null {
  if (text.trim() === '') return null;
  const { fault } = readAmount(text, most === undefined ? {} : { most });
  return fault === null ? null : `The amount ${fault}.`;
}

/** A request for a key without limits that were left empty. For a draft without faults. */
export function newKeyOf(draft: KeyDraft): Schemas['NewKey'] {
  const { label, budget, rate_limit, max_price, services, expires_at } = read(draft);
  return {
    ...(label === null ? {} : { label }),
    ...(budget === null ? {} : { budget }),
    ...(rate_limit === null ? {} : { rate_limit }),
    ...(max_price === null ? {} : { max_price }),
    ...(services === null ? {} : { services }),
    ...(expires_at === null ? {} : { expires_at }),
  };
}

/** What a draft changes relative to the form's initial values; null: nothing. For a draft without faults. */
export function changeOf(before: KeyDraft, draft: KeyDraft): Schemas['KeyChange'] | null {
  const { label, budget, rate_limit, max_price, services, expires_at } = read(draft);
  const isNew = (...names: (keyof KeyDraft)[]): boolean => names.some((name) => draft[name] !== before[name]);
  const change = {
    ...(isNew('label') ? { label } : {}),
    ...(isNew('amount') || (budget !== null && isNew('period')) ? { budget } : {}),
    // A key always has a rate limit: an empty field does not change it.
    ...(isNew('rateLimit') && rate_limit !== null ? { rate_limit } : {}),
    ...(isNew('maxPrice') ? { max_price } : {}),
    ...(isNew('services') ? { services } : {}),
    ...(isNew('expires') ? { expires_at } : {}),
  };
  return Object.keys(change).length === 0 ? null : change;
}

/** A field that was left empty is null. */
function read(draft: KeyDraft) {
  const amount = usd(draft.amount, MAX_BUDGET_USD);
  const ids = linesOf(draft.services).flatMap((line) => UUID.exec(line)?.[0].toLowerCase() ?? []);
  return {
    label: draft.label.trim() || null,
    budget: amount === null ? null : { amount, period: draft.period },
    rate_limit: draft.rateLimit.trim() === '' ? null : Number(draft.rateLimit),
    max_price: usd(draft.maxPrice),
    services: ids.length === 0 ? null : [...new Set(ids)],
    expires_at: draft.expires === '' ? null : new Date(draft.expires).toISOString(),
  };
}

const usd = (text: string, most?: number): number | null => readAmount(text, most === undefined ? {} : { most }).usd;
