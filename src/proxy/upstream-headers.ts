import { assert } from '../assert.ts';
import type { Listing } from '../catalog/listing.ts';
import type { RequestHead } from '../gate/caller-io.ts';
import type { OpenedSecrets } from '../secrets/service-secrets.ts';
import { asSent, carriesKey, connectionOptions, requestHeaderLines } from './header-rules.ts';
import { type SignedRequest, Signer } from './signature.ts';

/**
 * What one listing changes in the headers of its calls: headers that the gateway adds, credentials that the caller agrees to
 * forward, and a signature. It is made once per version of a listing. Most listings have none, and their calls pay two comparisons
 * with null.
 *
 * Tested by test/proxy/upstream-headers.test.ts.
 */
export class UpstreamHeaders {
  /** Names of the headers that the gateway adds, as `folded` writes them. */
  readonly #added: ReadonlySet<string>;
  readonly #addedLines: string;
  /** Names of credential headers that the service asks for. */
  readonly #asked: ReadonlySet<string>;
  readonly #signer: Signer | null;
  /**
   * Headers and parameters, by name, and signing keys, by keyid, whose secrets could not be decrypted. If there are any, nothing
   * may be sent.
   */
  readonly unreadable: readonly string[];

  /** Whether the listing adds its own credentials: headers, parameters of the query, or a signature. */
  readonly #hasCredentials: boolean;

  /** @param authority  the value of `Host` towards the service */
  constructor(listing: Listing, authority: string, { headers, query, signingKeys, unreadable }: OpenedSecrets) {
    this.unreadable = unreadable;
    this.#hasCredentials = headers.length > 0 || query.length > 0 || listing.signingKeys !== null;
    this.#added = new Set(headers.map(([name]) => folded(name)));
    this.#addedLines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    this.#asked = new Set(listing.forwardHeaders?.split(','));
    this.#signer = listing.signingKeys === null ? null : new Signer(authority, signingKeys);
  }

  /** Header lines for the service. For other listings `requestHeaderLines` makes them. */
  lines({ headers, isAscii }: Pick<RequestHead, 'headers' | 'isAscii'>, request: SignedRequest, nowMs: number): string {
    assert(this.unreadable.length === 0, 'no call is sent without the headers of its listing');
    let lines = requestHeaderLines({ headers: this.#passing(headers), isAscii }, request.usageId, request.buyer);
    if (this.#asked.size > 0) lines += asSent(this.#agreed(headers), isAscii);
    lines += this.#addedLines;
    return this.#signer === null ? lines : lines + this.#signer.lines(request, nowMs);
  }

  /** Whether a service that refuses the credentials of a call refuses those of its listing: the caller has sent none. */
  showsListingCredentialsOnly(headers: readonly string[]): boolean {
    return this.#hasCredentials && (this.#asked.size === 0 || this.#agreed(headers) === '');
  }

  /** The caller's headers, without those that the gateway itself writes in calls of this listing. */
  #passing(headers: readonly string[]): readonly string[] {
    if (this.#added.size === 0 && this.#signer === null) return headers;
    const passing: string[] = [];
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] as string;
      if (!this.#isOurs(folded(name))) passing.push(name, headers[i + 1] as string);
    }
    return passing;
  }

  #isOurs(name: string): boolean {
    return this.#added.has(name) || (this.#signer !== null && name.startsWith('signature'));
  }

  /** Lines of the credential headers that the service asks for and that the caller agrees to forward on this request. */
  #agreed(headers: readonly string[]): string {
    const agreed = namesIn(headers, 'x-acf-forward');
    const named = connectionOptions(headers, true);
    let lines = '';
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] as string;
      const value = headers[i + 1] as string;
      if (!this.#asked.has(name) || !agreed.has(name) || named?.has(name) || this.#added.has(name)) continue;
      if (!carriesKey(value) && !carriesKey(decoded(value))) lines += `${name}: ${value}\r\n`;
    }
    return lines;
  }
}

/**
 * Whether calls of this listing need `UpstreamHeaders`. So do calls with added query parameters: it knows which of them cannot be
 * decrypted.
 */
export function hasUpstreamHeaders({ upstreamHeaders, upstreamQuery, signingKeys, forwardHeaders }: Listing): boolean {
  return upstreamHeaders !== null || upstreamQuery !== null || signingKeys !== null || forwardHeaders !== null;
}

/** A name as services may read it: CGI and its heirs treat an underscore as a hyphen. */
const folded = (name: string): string => (name.includes('_') ? name.replaceAll('_', '-') : name);

/**
 * The decoded text of a value that ends in base64, like that of `Authorization: Basic` (RFC 7617): a client may send our key in
 * this form.
 */
const decoded = (value: string): string =>
  Buffer.from(value.slice(value.lastIndexOf(' ') + 1), 'base64').toString('latin1');

/** The header names in a comma-separated list, in lower case. */
function namesIn(headers: readonly string[], list: string): Set<string> {
  const names = new Set<string>();
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i] !== list) continue;
    for (const name of (headers[i + 1] as string).split(',')) names.add(name.trim().toLowerCase());
  }
  return names;
}
