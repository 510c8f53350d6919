import { microsToUsd, usdToMicros } from '../platform/money.ts';
import { freeCallsLabel, priceLabel } from './labels.ts';
import type { Language } from './languages.ts';
import type { Listing } from './listing.ts';
import { storedHeaders, storedSigningKeys } from './listing-secrets.ts';
import { nextPrice, nextPriceWithOperations } from './notice/next-price.ts';
import type { Operation } from './operations/operation.ts';
import type { Quality } from './quality.ts';

/** Maximum number of characters (code points) of a description in /discover; a longer one is cut there and gets an ellipsis. */
export const SHORT_DESCRIPTION = 200;

/** The first 200 characters and '…', or the whole text if it is not longer. Never splits a surrogate pair. */
export function shorten(text: string): string {
  let end = 0;
  // A loop, because `[...text]` took 4.7 µs for 400 characters and this takes 1.0 µs.
  for (let points = 0; points < SHORT_DESCRIPTION && end < text.length; points++) {
    end += (text.codePointAt(end) as number) > 0xffff ? 2 : 1;
  }
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

// A service is written in three parts: `identity`, `terms` and `place`. Only `terms`, with the labels, depends on the language.

const identity = (listing: Listing, description: string) => ({
  id: listing.id,
  name: listing.name,
  description,
  price: microsToUsd(listing.priceMicros),
});

/** `free_calls` and its label are absent when the listing has no free calls. */
const terms = ({ priceMicros, freeCalls }: Listing, language: Language) => ({
  price_label: priceLabel(priceMicros, language),
  ...(freeCalls === 0 ? {} : { free_calls: freeCalls, free_calls_label: freeCallsLabel(freeCalls, language) }),
});

/** `quality_trend` is absent when it is not known. */
const place = ({ id, category }: Listing, { value, trend, rated }: Quality) => ({
  category,
  quality: value,
  ...(trend === null ? {} : { quality_trend: trend }),
  rated,
  proxy_path: `/api/v1/proxy/${id}/`,
});

/** What is announced, without operations: they would make a list of services long. */
const soon = ({ next, ...listing }: Listing) => (next === null ? {} : { next_price: nextPrice(listing, next) });

const soonWithOperations = ({ next, ...listing }: Listing) =>
  next === null ? {} : { next_price: nextPriceWithOperations(listing, next) };

/** How the service is called. `idle_seconds` and `forward_headers` are absent unless the provider set them. */
const manner = ({ protocol, timeoutSeconds, idleSeconds, onlyOperations, forwardHeaders }: Listing) => ({
  protocol,
  timeout_seconds: timeoutSeconds,
  ...(idleSeconds === null ? {} : { idle_seconds: idleSeconds }),
  only_operations: onlyOperations,
  ...(forwardHeaders === null ? {} : { forward_headers: forwardHeaders.split(',') }),
});

/** What is told beside quality, where one listing is shown. */
export type Watched = {
  /** Absent unless the service has a health path and was asked. */
  readonly uptime?: Uptime | undefined;
  /** For those who may change the listing: whether the endpoint gave an answer when it was asked once. */
  readonly found?: { readonly reachable: boolean; readonly checkedAt: Date } | undefined;
};
type Uptime = { readonly last_24_hours?: number; readonly last_30_days: number };

const links = ({ docsUrl }: Listing, { uptime }: Watched) => ({
  ...(uptime === undefined ? {} : { uptime }),
  ...(docsUrl === null ? {} : { docs_url: docsUrl }),
});

/** What only those who may change the listing see. Of its secrets these are names: the values are never shown again. */
const provision = ({ endpoint, healthPath, upstreamHeaders, signingKeys }: Listing, { found }: Watched) => {
  const [present] = storedSigningKeys(signingKeys);
  return {
    endpoint,
    ...(healthPath === null ? {} : { health_path: healthPath }),
    ...(found === undefined ? {} : { reachable: found.reachable, checked_at: found.checkedAt.toISOString() }),
    upstream_headers: storedHeaders(upstreamHeaders).map(([name]) => name),
    signed: present !== undefined,
    ...(present === undefined ? {} : { signing_keyid: present.keyid }),
  };
};

/**
 * A listing as an agent needs it to make a call: the fields of /discover with the whole description, and the operations, each with
 * the price that a call of it has.
 */
export function agentItem(
  listing: Listing,
  quality: Quality,
  language: Language,
  operations: readonly Operation[],
  watched: Watched = {},
): object {
  return {
    ...identity(listing, listing.description),
    ...terms(listing, language),
    ...place(listing, quality),
    ...soonWithOperations(listing),
    ...links(listing, watched),
    ...manner(listing),
    operations: operations.map((operation) => pricedOperation(operation, listing, language)),
  };
}

function pricedOperation(operation: Operation, { priceMicros }: Listing, language: Language): object {
  const micros = operation.price === undefined ? priceMicros : (usdToMicros(operation.price) as number);
  return { ...operation, price: microsToUsd(micros), price_label: priceLabel(micros, language) };
}

/**
 * A listing as /services shows it: the fields of /discover with the whole description, then status, provider and dates.
 * @param view  with the endpoint and the names of secrets for those who may change the listing: its provider and admins. Operations
 *              as the provider wrote them; absent in lists
 */
export function fullItem(
  listing: Listing,
  quality: Quality,
  language: Language,
  view: {
    readonly withEndpoint: boolean;
    readonly operations?: readonly Operation[];
    readonly watched?: Watched;
    /** How long a change after which a call may cost more is announced. */
    readonly noticeSeconds?: number;
    /** The operations that are announced, as the provider wrote them. */
    readonly announced?: readonly Operation[];
  },
): object {
  return {
    ...identity(listing, listing.description),
    ...terms(listing, language),
    ...place(listing, quality),
    ...soonWithOperations(listing),
    ...links(listing, view.watched ?? {}),
    status: listing.status,
    ...manner(listing),
    ...(view.operations === undefined ? {} : { operations: view.operations }),
    provider_id: listing.providerId,
    ...(view.withEndpoint ? provision(listing, view.watched ?? {}) : {}),
    ...(view.noticeSeconds === undefined ? {} : { price_notice_seconds: view.noticeSeconds }),
    ...(view.announced === undefined ? {} : { announced_operations: view.announced }),
    created_at: new Date(listing.createdAtMs).toISOString(),
    updated_at: new Date(Math.trunc(listing.updatedAtMicros / 1_000)).toISOString(),
  };
}

/** Maximum number of price and free-call combinations whose labels are cached per language; at the bound, all are dropped. */
const MAX_TERMS = 10_000;

/**
 * Writes services of /discover as JSON text. Labels are cached by language, price and number of free calls, because many listings
 * share them.
 */
export class DiscoverWriter {
  readonly #terms = new Map<Language, Map<string, string>>();

  write(listing: Listing, quality: Quality, language: Language): string {
    const head = JSON.stringify(identity(listing, shorten(listing.description))).slice(0, -1);
    const tail = JSON.stringify({ ...place(listing, quality), ...soon(listing) }).slice(1);
    return `${head},${this.#termsOf(listing, language)},${tail}`;
  }

  #termsOf(listing: Listing, language: Language): string {
    let kept = this.#terms.get(language);
    if (kept === undefined || kept.size >= MAX_TERMS) {
      kept = new Map();
      this.#terms.set(language, kept);
    }
    const key = `${listing.priceMicros} ${listing.freeCalls}`;
    let text = kept.get(key);
    if (text === undefined) {
      text = JSON.stringify(terms(listing, language)).slice(1, -1);
      kept.set(key, text);
    }
    return text;
  }
}
