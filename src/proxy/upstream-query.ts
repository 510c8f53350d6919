import { foldedParameter } from '../catalog/listing-secrets.ts';

/** Minimum length of a value that is searched for: shorter ones occur in many unrelated texts, and are no secrets. */
const MIN_SECRET_LENGTH = 6;
/** How often a URL may be encoded within another one, as in `?next=https%3A%2F%2F…`, for a secret in it to be found. */
const MAX_ENCODINGS = 3;

/**
 * The parameters that one listing adds to the query of its calls, such as the API key of its service. They replace the caller's
 * parameters of the same names, and do not come back to callers in response headers. Bodies are not searched.
 *
 * Made once per version of a listing. Calls of listings without such parameters pay a comparison with null.
 *
 * Tested by test/proxy/upstream-query.test.ts.
 */
export class UpstreamQuery {
  /** Names in the form that `foldedParameter` writes. */
  readonly #names: ReadonlySet<string>;
  readonly #added: string;
  readonly #secrets: readonly string[];

  constructor(parameters: readonly (readonly [name: string, value: string])[]) {
    this.#names = new Set(parameters.map(([name]) => foldedParameter(name)));
    this.#added = parameters.map((pair) => pair.map(encodeURIComponent).join('=')).join('&');
    this.#secrets = parameters.map(([, value]) => value).filter(({ length }) => length >= MIN_SECRET_LENGTH);
  }

  /** @param query the caller's query, without '?'; undefined if there was no '?' */
  sent(query: string | undefined): string {
    const kept = query === undefined ? '' : this.#without(query);
    return kept === '' ? this.#added : `${kept}&${this.#added}`;
  }

  /** Removes these parameters from a URL to which the service redirects the caller. Null if the rest still shows a secret. */
  hiddenIn(location: string): string | null {
    const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(location) ?? [];
    const kept = query === undefined ? '' : this.#without(query);
    const cleaned = query === undefined || (kept === '' && query !== '') ? path : `${path}?${kept}`;
    return this.#shows(cleaned + fragment) ? null : cleaned + fragment;
  }

  /**
   * Response headers, flat, without those that show a secret, such as a `Link` to the next page. The headers that `hiddenIn` judges
   * are not checked here.
   */
  passing(headers: readonly string[]): readonly string[] {
    const passing: string[] = [];
    for (let i = 0; i < headers.length; i += 2) {
      const [name, value] = [headers[i] as string, headers[i + 1] as string];
      if (/^(content-)?location$/i.test(name) || !this.#shows(value)) passing.push(name, value);
    }
    return passing;
  }

  /** The query without these parameters, otherwise byte for byte unchanged. Some servers also treat `;` as a separator. */
  #without(query: string): string {
    const parts = query.split(/([&;])/);
    const isOurs = (part: string): boolean => this.#names.has(foldedParameter(part.split('=', 1)[0] as string));
    let kept: string | null = null;
    for (let i = 0; i < parts.length; i += 2) {
      const part = parts[i] as string;
      if (!isOurs(part)) kept = kept === null ? part : kept + parts[i - 1] + part;
    }
    return kept ?? '';
  }

  #shows(text: string): boolean {
    let decoded = text;
    for (let times = 0; times <= MAX_ENCODINGS; times++) {
      const spaced = decoded.replaceAll('+', ' ');
      if (this.#secrets.some((secret) => decoded.includes(secret) || spaced.includes(secret))) return true;
      decoded = decoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    }
    return false;
  }
}
