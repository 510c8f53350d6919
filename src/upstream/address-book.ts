import { lookup as getaddrinfo } from 'node:dns';
import { isIP } from 'node:net';
import type { AddressPolicy } from './address-policy.ts';
import type { Failure } from './errors.ts';
import type { Lookup, ResolvedAddress } from './types.ts';

export type Resolution =
  | { readonly ok: true; readonly addresses: readonly ResolvedAddress[] }
  | { readonly ok: false; readonly failure: Failure };

/** getaddrinfo does not tell the TTL; ten seconds is short for a failover and long for a hot path. */
const CACHE_MS = 10_000;
const MAX_CACHED_NAMES = 1000;
/** Addresses of one name that are worth trying. */
const MAX_ADDRESSES = 8;

type Entry = { readonly resolution: Promise<Resolution>; staleAt: number };

/**
 * Names to addresses that may be dialled. The caller dials the addresses it gets, never the name, so what was checked is
 * what is connected to. Answers are kept for a short time, and shared while they are on their way; failures are not kept.
 */
export class AddressBook {
  readonly #policy: AddressPolicy;
  readonly #lookup: Lookup;
  /** Oldest first: Map keeps insertion order. */
  readonly #names = new Map<string, Entry>();

  constructor(policy: AddressPolicy, lookup: Lookup = systemLookup) {
    this.#policy = policy;
    this.#lookup = lookup;
  }

  /** Never rejects. */
  resolve(hostname: string): Promise<Resolution> {
    const family = isIP(hostname);
    if (family !== 0) return Promise.resolve(this.#select(hostname, [{ address: hostname, family }]));
    const known = this.#names.get(hostname);
    if (known !== undefined && performance.now() < known.staleAt) return known.resolution;
    return this.#ask(hostname);
  }

  #ask(hostname: string): Promise<Resolution> {
    const entry: Entry = { resolution: this.#resolveName(hostname), staleAt: performance.now() + CACHE_MS };
    this.#names.delete(hostname);
    this.#names.set(hostname, entry);
    if (this.#names.size > MAX_CACHED_NAMES) this.#names.delete(this.#names.keys().next().value as string);
    void entry.resolution.then(({ ok }) => {
      if (ok) entry.staleAt = performance.now() + CACHE_MS;
      else if (this.#names.get(hostname) === entry) this.#names.delete(hostname);
    });
    return entry.resolution;
  }

  async #resolveName(hostname: string): Promise<Resolution> {
    try {
      const addresses = await this.#lookup(hostname);
      if (addresses.length > 0) return this.#select(hostname, addresses);
      return { ok: false, failure: { code: 'dns_failed', message: `${hostname} has no address` } };
    } catch (cause) {
      return { ok: false, failure: { code: 'dns_failed', message: `${hostname} could not be resolved`, cause } };
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

function systemLookup(hostname: string): Promise<ResolvedAddress[]> {
  return new Promise((resolve, reject) => {
    getaddrinfo(hostname, { all: true }, (error, addresses) => {
      if (error === null) resolve(addresses);
      else reject(error);
    });
  });
}
