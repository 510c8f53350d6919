import { NODATA, Resolver, TIMEOUT } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ResolvedAddress } from './types.ts';

/** Shorter than the connect timeout, so that a name that hangs is told from a service that does. */
const MAX_LOOKUP_MS = 3_000;
/** Until a nameserver is asked again. */
const TRY_MS = 1_000;
const TRIES = 3;
/** glibc's bound on `search`. */
const MAX_SEARCH_DOMAINS = 6;

export type NameLookupOptions = {
  readonly hostsFile?: string;
  readonly resolvConf?: string;
  /** In place of the nameservers that the system names. */
  readonly servers?: readonly string[];
  readonly maxLookupMs?: number;
};

/**
 * Names to addresses: what the hosts file says, else what the nameservers say, for the name as it stands and then within the
 * search domains (a container's neighbours have short names).
 *
 * Not getaddrinfo: that takes a thread of libuv's pool for as long as the nameservers of a name please, 10 s and more, and
 * two at a time are all there are. Three listings whose nameserver is silent kept every other service's name waiting
 * for 10 s. Here a name that hangs costs a socket until its time is up, and nobody else anything.
 *
 * IPv4 addresses come first. Sources that only the C library knows (mDNS, NIS) are not asked.
 */
export class NameLookup {
  readonly #hosts: CachedFile<Map<string, ResolvedAddress[]>>;
  readonly #searchDomains: CachedFile<string[]>;
  readonly #servers: readonly string[] | undefined;
  readonly #maxLookupMs: number;

  constructor(options: NameLookupOptions = {}) {
    this.#hosts = new CachedFile(options.hostsFile ?? '/etc/hosts', parseHosts);
    this.#searchDomains = new CachedFile(options.resolvConf ?? '/etc/resolv.conf', parseSearchDomains);
    this.#servers = options.servers;
    this.#maxLookupMs = options.maxLookupMs ?? MAX_LOOKUP_MS;
  }

  /** Rejects with the code ETIMEOUT when there was no answer in time, with that of c-ares when there was a bad one. */
  readonly lookup = async (hostname: string): Promise<ResolvedAddress[]> => {
    const known = this.#hosts.read().get(hostname);
    if (known !== undefined) return known;
    // RFC 6761 §6.3: never a question for a nameserver.
    if (hostname === 'localhost' || hostname.endsWith('.localhost')) return LOOPBACK;
    // One for each look-up: it reads which nameservers there are now, and is cancelled as a whole.
    const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    let isTimeUp = false;
    const timer = setTimeout(() => {
      isTimeUp = true;
      resolver.cancel();
    }, this.#maxLookupMs);
    try {
      let failure: unknown;
      for (const name of [hostname, ...this.#searchDomains.read().map((domain) => `${hostname}.${domain}`)]) {
        const { addresses, error } = await resolveBoth(resolver, name);
        // What has come when the time is up counts: a nameserver may be silent about IPv6 only.
        if (addresses.length > 0) return addresses;
        failure ??= error;
        if (isTimeUp) throw Object.assign(new Error(`no answer within ${this.#maxLookupMs} ms`), { code: TIMEOUT });
      }
      // An alias that leads nowhere is a good answer without an address.
      throw failure ?? Object.assign(new Error(`${hostname} has no address`), { code: NODATA });
    } finally {
      clearTimeout(timer);
    }
  };
}

const LOOPBACK: ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

async function resolveBoth(
  resolver: Resolver,
  name: string,
): Promise<{ addresses: ResolvedAddress[]; error: unknown }> {
  const [ipv4, ipv6] = await Promise.allSettled([resolve(resolver, 4, name), resolve(resolver, 6, name)]);
  const addresses = [ipv4, ipv6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  return { addresses, error: ipv4.status === 'rejected' ? ipv4.reason : undefined };
}

function resolve(resolver: Resolver, family: 4 | 6, name: string): Promise<ResolvedAddress[]> {
  return new Promise((fulfil, reject) => {
    const answered = (error: Error | null, addresses: string[]): void => {
      if (error !== null) reject(error);
      else fulfil(addresses.map((address) => ({ address, family })));
    };
    if (family === 4) resolver.resolve4(name, answered);
    else resolver.resolve6(name, answered);
  });
}

/** A file that is parsed again when it has changed. One that is not there is empty. */
class CachedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #parsed: T;
  #changedMs = -1;

  constructor(path: string, parse: (text: string) => T) {
    this.#path = path;
    this.#parse = parse;
    this.#parsed = parse('');
  }

  read(): T {
    const stats = statSync(this.#path, { throwIfNoEntry: false });
    const changedMs = stats?.mtimeMs ?? -1;
    if (changedMs !== this.#changedMs) {
      this.#parsed = this.#parse(stats === undefined ? '' : readFileSync(this.#path, 'utf8'));
      this.#changedMs = changedMs;
    }
    return this.#parsed;
  }
}

/** hosts(5) */
function parseHosts(text: string): Map<string, ResolvedAddress[]> {
  const hosts = new Map<string, ResolvedAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = wordsOf(line);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names) {
      const known = hosts.get(name.toLowerCase());
      if (known === undefined) hosts.set(name.toLowerCase(), [{ address, family }]);
      else known.push({ address, family });
    }
  }
  return hosts;
}

/** resolv.conf(5): of several lines the last one counts. */
function parseSearchDomains(text: string): string[] {
  let domains: string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...values] = wordsOf(line);
    if (keyword === 'search') domains = values;
    else if (keyword === 'domain') domains = values.slice(0, 1);
  }
  // '.' stands for the root: the name as it is.
  return domains
    .map((domain) => domain.replace(/\.$/, ''))
    .filter((domain) => domain !== '')
    .slice(0, MAX_SEARCH_DOMAINS);
}

const wordsOf = (line: string): string[] =>
  (line.split(/[#;]/, 1)[0] as string).split(/\s+/).filter((word) => word !== '');
