import { parseTemplate } from '../operations/template.ts';
import { type JsonObject, listOf, objectOf, quoted, storableText } from './json.ts';

/**
 * Where an operation is, relative to the endpoint. `names` maps the path parameters' names in the document to those in the
 * template.
 */
type Location = { readonly path: string; readonly names: ReadonlyMap<string, string> } | { readonly reason: string };

type Server = {
  /** Without a trailing slash: '' or '/…'. */
  readonly path: string;
  /** Whether the document says that this server is at the endpoint's origin. */
  readonly isEndpoints: boolean;
};

/** Maximum characters of a name in a template. */
const MAX_NAME_LENGTH = 50;
const NO_SERVERS: readonly unknown[] = [];

/**
 * Turns the paths of a document into templates relative to the listing's endpoint. The document's path is the path of its server,
 * then that of the operation; what lies within the endpoint's path loses that prefix, and what lies outside of it cannot be reached
 * through the gateway. If a document's server has no path, and none of its paths lies within the endpoint's, the document does not
 * say where it is served: its paths are then taken to be relative to the endpoint.
 */
export class Locations {
  readonly #document: JsonObject;
  readonly #origin: string;
  /** Path of the endpoint without a trailing slash, as the upstream client reads it. */
  readonly #base: string;
  readonly #tellsPrefix: boolean;
  /** Results by list of servers: most operations share one list. */
  readonly #servers = new Map<readonly unknown[], Server>();

  constructor(document: JsonObject, endpoint: string) {
    const url = new URL(endpoint);
    this.#document = document;
    this.#origin = url.origin;
    this.#base = url.pathname.replace(/\/+$/, '');
    this.#tellsPrefix = Object.keys(objectOf(document.paths)).some((path) => this.#isWithin(path));
  }

  locate(path: string, item: JsonObject, operation: JsonObject): Location {
    const server = this.#serverOf(operation, item, this.#document);
    const template = toTemplate(path);
    if ('reason' in template) return template;
    const isRelative = server.path === '' && !server.isEndpoints && !this.#tellsPrefix;
    const whole = isRelative ? this.#base + template.path : server.path + template.path;
    if (!this.#isWithin(whole)) {
      return {
        reason: `its path, appended to that of the document's server, is ${quoted(whole)}, which is outside of the endpoint's path ${quoted(this.#base)}`,
      };
    }
    const relative = whole.slice(this.#base.length) || '/';
    const parsed = parseTemplate(relative);
    return 'fault' in parsed ? { reason: `its path ${parsed.fault}` } : { path: relative, names: template.names };
  }

  #isWithin(path: string): boolean {
    return path === this.#base || path.startsWith(`${this.#base}/`);
  }

  /** The server at the endpoint's origin among those that the innermost of these objects names, or else the first. */
  #serverOf(...levels: readonly JsonObject[]): Server {
    const named = levels.map(({ servers }) => listOf(servers)).find((servers) => servers.length > 0) ?? NO_SERVERS;
    let server = this.#servers.get(named);
    if (server === undefined) {
      const all = named.map((one) => this.#readServer(objectOf(one))).filter((one) => one !== null);
      server = all.find(({ isEndpoints }) => isEndpoints) ?? all[0] ?? { path: '', isEndpoints: false };
      this.#servers.set(named, server);
    }
    return server;
  }

  #readServer({ url, variables }: JsonObject): Server | null {
    if (typeof url !== 'string') return null;
    const values = new Map(Object.entries(objectOf(variables)).map(([name, value]) => [name, objectOf(value).default]));
    const text = url.replace(/\{([^{}]{1,100})\}/g, (whole, name: string) => String(values.get(name) ?? whole));
    const isAbsolute = /^https?:\/\//i.test(text);
    try {
      const { origin, pathname } = new URL(text, isAbsolute ? undefined : `${this.#origin}/`);
      return { path: pathname.replace(/\/+$/, ''), isEndpoints: isAbsolute && origin === this.#origin };
    } catch {
      // A URL with a variable that has no value names no server.
      return null;
    }
  }
}

/** '/users/{user-id}' → '/users/{user_id}', with the names that changed. */
function toTemplate(path: string): Location {
  const names = new Map<string, string>();
  const segments: string[] = [];
  for (const segment of storableText(path).split('/')) {
    const name = /^\{([^{}*+?]+)\}$/.exec(segment)?.[1];
    if (name !== undefined) {
      if (names.has(name)) return { reason: `its path has ${quoted(segment)} twice` };
      names.set(name, nameFor(name, new Set(names.values())));
      segments.push(`{${names.get(name)}}`);
    } else if (/[{}]/.test(segment)) {
      return { reason: `its path has ${quoted(segment)}; the gateway supports {name} only as a whole segment` };
    } else if (segment === '*') {
      return {
        reason: 'its path has *, which is an ordinary character in OpenAPI and stands for the rest of a path here',
      };
    } else segments.push(segment.replace(/[^\0-\x7f]+/gu, encodeURIComponent));
  }
  return { path: segments.join('/'), names };
}

/** A name that a template may have; those of OpenAPI may have any characters. */
function nameFor(name: string, taken: ReadonlySet<string>): string {
  const plain = name
    .replace(/[^A-Za-z0-9_]/g, '_')
    .replace(/^(?=\d)/, '_')
    .replace(/^__proto__$/, 'proto');
  const base = plain.slice(0, MAX_NAME_LENGTH);
  if (!taken.has(base)) return base;
  // A template has at most 32 segments, so a free number is found soon.
  for (let i = 2; ; i++) {
    const numbered = `${plain.slice(0, MAX_NAME_LENGTH - 10)}_${i}`;
    if (!taken.has(numbered)) return numbered;
  }
}
