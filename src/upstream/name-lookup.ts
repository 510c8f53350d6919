import { BADNAME, CANCELLED, NODATA, NOTFOUND, Resolver, TIMEOUT } from 'node:dns';
import { readFileSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ResolvedAddress } from './types.ts';

/**
 * Longest time for one look-up; then it fails as too late. Shorter than the connect timeout (5 s), so that an error can tell
 * whether the nameserver or the service was silent.
 */
const MAX_LOOKUP_MS = 3_000;
/**
 * How many times c-ares asks each nameserver, waiting twice as long each time. That is more than MAX_LOOKUP_MS has time for, so
 * that the gateway's own timer, not c-ares, gives up on silent nameservers.
 */
const TRIES = 5;
/**
 * The bounds that glibc has, or had, on `nameserver`, `search` (until glibc 2.26) and `ndots` in resolv.conf. Search domains
 * after the sixth are ignored, and a larger `ndots` is lowered.
 */
const MAX_NAMESERVERS = 3;
const MAX_SEARCH_DOMAINS = 6;
const MAX_NDOTS = 15;

type NameLookupOptions = {
  readonly hostsFile?: string;
  readonly resolvConf?: string;
  /** Nameservers to ask instead of the system's. */
  readonly servers?: readonly string[];
  readonly maxLookupMs?: number;
};

/**
 * Resolves a name to addresses: first from the hosts file, then from the nameservers. Like glibc, it asks for the name as it
 * stands and for the name within each search domain (containers call their neighbours by short names), in glibc's order.
 *
 * It goes on to the next of these candidates only when a nameserver has answered that the current one does not exist or has no
 * address. If the nameserver fails or is silent, the look-up fails, because the name may well exist. Going on, as glibc does
 * after a SERVFAIL, could find the wildcard record of a search domain: a service whose nameserver is away would become another host.
 *
 * It does not use getaddrinfo, which occupies a thread of libuv's pool for as long as the nameservers of a name take, 10 s and
 * more. libuv runs only two of these at a time, so three listings with a silent nameserver kept every other service's name waiting
 * for 10 s. Here a name that hangs costs one socket until its time is up, and delays no other name.
 *
 * IPv4 addresses come first. Sources that only the C library can ask (mDNS, NIS) are not used.
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
   * Rejects with the code ETIMEOUT when no nameserver answered in time, and with the error code of c-ares after a bad answer.
   *
   * @param hostname in lower case; a name that ends in a dot is not looked for within the search domains
   */
  readonly lookup = async (hostname: string): Promise<ResolvedAddress[]> => {
    const name = hostname.replace(/\.$/, '');
    const known = this.#hosts.read().get(name);
    if (known !== undefined) return known;
    // RFC 6761 §6.3: nameservers are never asked for these names.
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK;
    const candidates = name === hostname ? candidatesFor(name, this.#search.read()) : [name];
    // How long c-ares first waits for one nameserver: a third of a candidate's share of the time. Even if only the last of
    // three nameservers answers, each candidate gets its answer within its share.
    const tryMs = Math.ceil(this.#maxLookupMs / candidates.length / MAX_NAMESERVERS);
    // Each look-up has its own resolver: it reads the current nameservers, and its `cancel` does not end other look-ups.
    const resolver = new Resolver({ timeout: tryMs, tries: TRIES });
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    const endsAt = performance.now() + this.#maxLookupMs;
    let answer: Answer = { addresses: [], error: null };
    for (const [i, candidate] of candidates.entries()) {
      // Not below 0: Node 22 and later print a warning for a negative delay.
      const timeLeftMs = (): number => Math.max(0, endsAt - performance.now());
      answer = await resolveBoth(resolver, candidate, timeLeftMs, () => timeLeftMs() / (candidates.length - i));
      if (answer.addresses.length > 0) return answer.addresses;
      if (!isNoSuchName(answer.error)) break;
    }
    if (codeOf(answer.error) === CANCELLED) throw Object.assign(new Error('no answer in time'), { code: TIMEOUT });
    // No error means that the name is an alias (CNAME) that leads to no address.
    throw answer.error ?? Object.assign(new Error(`${hostname} has no address`), { code: NODATA });
  };
}

const LOOPBACK: ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * resolv.conf(5): a name with fewer dots than `ndots` is probably a neighbour's short name, so the search domains come first.
 * That also keeps the short name from public nameservers.
 */
function candidatesFor(name: string, { domains, ndots }: Search): string[] {
  const within = domains.map((domain) => `${name}.${domain}`);
  return name.split('.').length - 1 < ndots ? [...within, name] : [name, ...within];
}

/** `error` says why there are no addresses; it is null if the nameserver answered without an error. */
type Answer = { readonly addresses: ResolvedAddress[]; readonly error: unknown };

/**
 * Asks for the IPv4 and the IPv6 addresses of a name. Once the question about IPv4 is answered, it waits at most `ipv6Ms` for
 * the answer about IPv6: some nameservers do not answer questions about IPv6.
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
  // Which of the two errors counts? NOTFOUND for IPv4 does: that name has no address of either family (RFC 8020). NOTFOUND for IPv6
  // proves nothing: some nameservers without IPv6 wrongly answer it (RFC 4074 §4.2). If the question about IPv4 failed, that failure
  // counts. If IPv4 has no address and the question about IPv6 failed, the IPv6 failure counts: there may be an IPv6 address.
  const ipv4Decides = codeOf(error4) === NOTFOUND || !isNoSuchName(error4) || isNoSuchName(error6);
  return { addresses, error: ipv4Decides ? error4 : error6 };
}

/**
 * Whether the name certainly does not exist or has no address, by the nameserver's answer. A name that is too long (BADNAME),
 * as a search domain can make it, cannot exist either.
 */
function isNoSuchName(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined || code === NOTFOUND || code === NODATA || code === BADNAME;
}

/** Undefined when there was no error. */
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

/** A file that is parsed again when its modification time has changed. A file that does not exist counts as empty. */
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

/** Parses the hosts file, hosts(5). */
function parseHosts(text: string): Map<string, ResolvedAddress[]> {
  const hosts = new Map<string, ResolvedAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = wordsOf(line);
    const family = isIP(address);
    // An address with a zone (`fe80::1%lo0`) is link-local, so the policy forbids it. It is skipped here, because one forbidden
    // address makes the whole name forbidden.
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

/** resolv.conf(5): when a keyword stands on several lines, the last one counts. */
function parseSearch(text: string): Search {
  let domains: string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = wordsOf(line);
    if (keyword === 'search') domains = values;
    else if (keyword === 'domain') domains = values.slice(0, 1);
    else if (keyword === 'options') ndots = values.reduce((last, value) => ndotsOf(value) ?? last, ndots);
  }
  // The domain '.' is the root and adds nothing: dropped.
  domains = domains.map((domain) => domain.replace(/\.$/, '')).filter((domain) => domain !== '');
  return { domains: domains.slice(0, MAX_SEARCH_DOMAINS), ndots };
}

function ndotsOf(option: string): number | undefined {
  const digits = /^ndots:(\d+)$/.exec(option)?.[1];
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_NDOTS);
}

const wordsOf = (line: string): string[] =>
  (line.split(/[#;]/, 1)[0] as string).split(/\s+/).filter((word) => word !== '');
