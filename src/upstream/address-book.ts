import { TIMEOUT } from 'node:dns';
import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';
import { NameLookup } from './name-lookup.ts';
import type { Lookup, ResolvedAddress } from './types.ts';
import type { Failure } from './upstream-error.ts';

type Resolution =
  | { readonly ok: true; readonly addresses: readonly ResolvedAddress[] }
  | { readonly ok: false; readonly failure: Failure };

/**
 * A name's addresses are used for this long before they are looked up again, whatever their TTL. Short enough to follow a
 * failover, long enough to keep look-ups away from most calls.
 */
const FRESH_MS = 10_000;
/**
 * Stale addresses are still used until they are this old, while a look-up for newer ones is under way. After that, calls wait for
 * the look-up.
 */
const USABLE_MS = 60_000;
/** After a failed look-up, calls to that name fail at once for this long. */
const FAILED_MS = 5_000;
/** Maximum number of names kept. Beyond it, the name whose last look-up is oldest is forgotten. */
const MAX_CACHED_NAMES = 1000;
/**
 * Maximum number of look-ups under way. A call that would wait for one more fails as 'busy'. Each look-up occupies a socket,
 * for three seconds at most.
 */
const MAX_LOOKUPS = 1000;
/** Maximum number of addresses kept per name: the first ones of the answer. The others are never tried. */
const MAX_ADDRESSES = 8;

type Entry = {
  /** Null before the first answer. */
  resolution: Resolution | null;
  askAgainAt: number;
  usableUntil: number;
  /** The look-up under way, which all waiting calls share. */
  asking: Promise<Resolution> | null;
};

/**
 * Resolves a name to addresses that may be dialled. A connection is made to one of these addresses, never to the name, so the
 * address that was checked is the address that is dialled.
 *
 *   unknown ──► asked, calls wait ──► fresh ──10 s──► stale: asked again, calls get the last answer ──60 s──► unknown
 *                     └──► failed: calls fail at once ──5 s──► unknown
 *
 * An answer with a forbidden address replaces the last good answer at once. A failed look-up does not: the last good answer is
 * used until it is 60 s old.
 */
export class AddressBook {
  readonly #policy: AddressPolicy;
  readonly #lookup: Lookup;
  /** In the order of their last look-ups, oldest first, because a Map keeps insertion order. */
  readonly #names = new Map<string, Entry>();
  #lookups = 0;

  constructor(policy: AddressPolicy, lookup: Lookup = new NameLookup().lookup) {
    this.#policy = policy;
    this.#lookup = lookup;
  }

  /** Never rejects: a failure is a `Resolution` too. */
  resolve(hostname: string): Promise<Resolution> {
    const family = isIP(hostname);
    if (family !== 0) return Promise.resolve(this.#select(hostname, [{ address: hostname, family }]));
    const entry = this.#names.get(hostname) ?? { resolution: null, askAgainAt: 0, usableUntil: 0, asking: null };
    const { resolution } = entry;
    const now = performance.now();
    if (resolution !== null && now < entry.askAgainAt) return Promise.resolve(resolution);
    const asking = entry.asking ?? this.#ask(hostname, entry);
    return resolution !== null && now < entry.usableUntil ? Promise.resolve(resolution) : asking;
  }

  #ask(hostname: string, entry: Entry): Promise<Resolution> {
    if (this.#lookups >= MAX_LOOKUPS) {
      return Promise.resolve({ ok: false, failure: { code: 'busy', message: 'too many names are being looked up' } });
    }
    this.#names.delete(hostname);
    this.#names.set(hostname, entry);
    if (this.#names.size > MAX_CACHED_NAMES) this.#names.delete(this.#names.keys().next().value as string);
    entry.asking = this.#resolveName(hostname).then((resolution) => {
      this.#keep(entry, resolution);
      return resolution;
    });
    return entry.asking;
  }

  #keep(entry: Entry, resolution: Resolution): void {
    const now = performance.now();
    entry.asking = null;
    entry.askAgainAt = now + (resolution.ok ? FRESH_MS : FAILED_MS);
    const hasLast = entry.resolution?.ok === true && now < entry.usableUntil;
    if (hasLast && !resolution.ok && resolution.failure.code !== 'address_forbidden') {
      entry.askAgainAt = Math.min(entry.askAgainAt, entry.usableUntil);
      return;
    }
    entry.resolution = resolution;
    entry.usableUntil = resolution.ok ? now + USABLE_MS : 0;
  }

  /** Never rejects: when no call waits for this look-up any more, a rejection would go unhandled and end the process. */
  async #resolveName(hostname: string): Promise<Resolution> {
    this.#lookups++;
    try {
      const addresses = await this.#lookup(hostname);
      if (addresses.length > 0) return this.#select(hostname, addresses);
      return { ok: false, failure: { code: 'dns_failed', message: `${hostname} has no address` } };
    } catch (cause) {
      // A look-up given in the options can throw anything, also null.
      const isLate = (cause as { code?: unknown } | null | undefined)?.code === TIMEOUT;
      const message = isLate ? `${hostname} was not resolved in time` : `${hostname} could not be resolved`;
      return { ok: false, failure: { code: isLate ? 'dns_timeout' : 'dns_failed', message, cause } };
    } finally {
      this.#lookups--;
    }
  }

  #select(hostname: string, found: readonly ResolvedAddress[]): Resolution {
    const addresses = this.#policy.select(found).slice(0, MAX_ADDRESSES);
    if (addresses.length > 0) return { ok: true, addresses };
    const list = found.map(({ address }) => address).join(', ');
    const message = `${hostname} is not on the public internet (${list})`;
    return { ok: false, failure: { code: 'address_forbidden', message } };
  }
}
