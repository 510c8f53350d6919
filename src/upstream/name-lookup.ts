import { BADNAME, CANCELLED, NODATA, NOTFOUND, Resolver, TIMEOUT } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ResolvedAddress } from './types.ts';

/** Shorter than the connect timeout, so that a name that hangs is told from a service that does. */
const MAX_LOOKUP_MS = 3_000;
/** Each is waited for twice as long as the one before. More than there is time for: our clock ends it, not c-ares. */
const TRIES = 5;
/** glibc's bounds on `nameserver`, `search` and `ndots`. */
const MAX_NAMESERVERS = 3;
const MAX_SEARCH_DOMAINS = 6;
const MAX_NDOTS = 15;

export type NameLookupOptions = {
  readonly hostsFile?: string;
  readonly resolvConf?: string;
  /** In place of the nameservers that the system names. */
  readonly servers?: readonly string[];
  readonly maxLookupMs?: number;
};

/**
 * Names to addresses: what the hosts file says, else what the nameservers say, for the name as it stands and within the search
 * domains (a container's neighbours have short names), in glibc's order.
 *
 * The next one is asked for only when the answer was that there is no such name, or none with an address. After a failure of
 * the nameserver, or silence, nobody knows whether there is, and the look-up has failed: the wildcard record of a search
 * domain would otherwise make another host of a service whose own nameserver is away. (glibc goes on after a SERVFAIL.)
 *
 * Not getaddrinfo: that takes a thread of libuv's pool for as long as the nameservers of a name please, 10 s and more, and
 * two at a time are all there are. Three listings whose nameserver is silent kept every other service's name waiting
 * for 10 s. Here a name that hangs costs a socket until its time is up, and nobody else anything.
 *
 * IPv4 addresses come first. Sources that only the C library knows (mDNS, NIS) are not asked.
 */
export class NameLookup {
  readonly #hosts: CachedFile<Map<string, ResolvedAddress[]>>;
  readonly #search: CachedFile<Search>;
  readonly #servers: readonly string[] | undefined;
  readonly #maxLookupMs: number;

  constructor(options: NameLookupOptions = {}) {
    this.#hosts = new CachedFile(options.hostsFile ?? '/etc/hosts', parseHosts);
    this.#search = new CachedFile(options.resolvConf ?? '/etc/resolv.conf', parseSearch);
    this.#servers = options.servers;
    this.#maxLookupMs = options.maxLookupMs ?? MAX_LOOKUP_MS;
  }

  /**
   * Rejects with the code ETIMEOUT when a nameserver did not answer in time, with that of c-ares when there was a bad answer.
   *
   * @param hostname in lower case; with a dot at its end, it is not looked for within the search domains
   */
  readonly lookup = async (hostname: string): Promise<ResolvedAddress[]> => {
    const name = hostname.replace(/\.$/, '');
    const known = this.#hosts.read().get(name);
    if (known !== undefined) return known;
    // RFC 6761 §6.3: never a question for a nameserver.
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK;
    const candidates = name === hostname ? candidatesFor(name, this.#search.read()) : [name];
    // One for each look-up: it reads which nameservers there are now, and is cancelled as a whole.
    // When all nameservers but the last are gone, the first name still has time for that one.
    const tryMs = Math.ceil(this.#maxLookupMs / candidates.length / MAX_NAMESERVERS);
    const resolver = new Resolver({ timeout: tryMs, tries: TRIES });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    const endsAt = performance.now() + this.#maxLookupMs;
    let answer: Answer = { addresses: [], error: null };
    for (const [i, candidate] of candidates.entries()) {
      // Of a negative delay Node 22 and later warn, on standard error.
      const timeLeftMs = (): number => Math.max(0, endsAt - performance.now());
      answer = await resolveBoth(resolver, candidate, timeLeftMs, () => timeLeftMs() / (candidates.length - i));
      if (answer.addresses.length > 0) return answer.addresses;
      if (!isNoSuchName(answer.error)) break;
    }
    if (codeOf(answer.error) === CANCELLED) throw Object.assign(new Error('no answer in time'), { code: TIMEOUT });
    // An alias that leads nowhere is a good answer without an address.
    throw answer.error ?? Object.assign(new Error(`${hostname} has no address`), { code: NODATA });
  };
}

const LOOPBACK: ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** resolv.conf(5): a name with fewer dots than `ndots` is most likely a neighbour's, and none of a public nameserver's business. */
function candidatesFor(name: string, { domains, ndots }: Search): string[] {
  const within = domains.map((domain) => `${name}.${domain}`);
  return name.split('.').length - 1 < ndots ? [...within, name] : [name, ...within];
}

/** Without addresses: what is known of the name, or why nothing is. */
type Answer = { readonly addresses: ResolvedAddress[]; readonly error: unknown };

/**
 * Asks for both families. Once there is a word about IPv4, what has come when `ipv6Ms` are over counts: a nameserver may be
 * silent about IPv6 only.
 */
async function resolveBoth(
  resolver: Resolver,
  name: string,
  ipv4Ms: () => number,
  ipv6Ms: () => number,
): Promise<Answer> {
  const cancel = (): void => resolver.cancel();
  let timer = setTimeout(cancel, ipv4Ms());
  const asking = [resolve(resolver, 4, name), resolve(resolver, 6, name)] as const;
  const waitLess = (): void => {
    clearTimeout(timer);
    timer = setTimeout(cancel, ipv6Ms());
  };
  asking[0].then(waitLess, waitLess);
  const [ipv4, ipv6] = await Promise.allSettled(asking);
  clearTimeout(timer);
  const addresses = [ipv4, ipv6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  const [error4, error6] = [ipv4, ipv6].map((answer) => (answer.status === 'rejected' ? answer.reason : null));
  // RFC 8020: a name that is not there has no address of either family. The other way round it cannot be relied on: there are
  // nameservers that know nothing of IPv6, and say so of the name (RFC 4074 §4.2).
  const ipv4Decides = codeOf(error4) === NOTFOUND || !isNoSuchName(error4) || isNoSuchName(error6);
  return { addresses, error: ipv4Decides ? error4 : error6 };
}

/** A good answer: there is no such name, or none with an address. One that is too long within a search domain cannot be there. */
function isNoSuchName(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined || code === NOTFOUND || code === NODATA || code === BADNAME;
}

/** Undefined: an answer came. */
const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code;

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
    // With a zone (`fe80::1%lo0`) it is link-local: none to dial, and one address that is not makes the whole name forbidden.
    if (family === 0 || address.includes('%')) continue;
    for (const name of names) {
      const known = hosts.get(name.toLowerCase());
      if (known === undefined) hosts.set(name.toLowerCase(), [{ address, family }]);
      else known.push({ address, family });
    }
  }
  return hosts;
}

type Search = { readonly domains: readonly string[]; readonly ndots: number };

/** resolv.conf(5): of several lines the last one counts. */
function parseSearch(text: string): Search {
  let domains: string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = wordsOf(line);
    if (keyword === 'search') domains = values;
    else if (keyword === 'domain') domains = values.slice(0, 1);
    else if (keyword === 'options') ndots = values.reduce((last, value) => ndotsOf(value) ?? last, ndots);
  }
  // '.' stands for the root: the name as it is.
  domains = domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
  return { domains: domains.slice(0, MAX_SEARCH_DOMAINS), ndots };
}

function ndotsOf(option: string): number | undefined {
  const digits = /^ndots:(\d+)$/.exec(option)?.[1];
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_NDOTS);
}

const wordsOf = (line: string): string[] =>
  (line.split(/[#;]/, 1)[0] as string).split(/\s+/).filter((word) => word !== '');
