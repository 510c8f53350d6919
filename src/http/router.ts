import type { Route } from './route.ts';

type Match =
  | { readonly kind: 'route'; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  | { readonly kind: 'not_found' };

type Entry = { readonly segments: readonly string[]; readonly routes: Route[] };

/** Finds the route of an API request. It searches a list, because there are only a few dozen patterns and calls do not use them. */
export class Router {
  readonly #entries: Entry[] = [];

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const segments = route.path.split('/');
      const entry = this.#entries.find((known) => known.segments.join('/') === route.path);
      if (entry === undefined) this.#entries.push({ segments, routes: [route] });
      else entry.routes.push(route);
    }
    // A pattern with fewer parameters is more specific: `/keys/me` is tried before `/keys/:key_id`.
    const parameters = (entry: Entry): number => entry.segments.filter((segment) => segment.startsWith(':')).length;
    this.#entries.sort((a, b) => parameters(a) - parameters(b));
  }

  /** The route of GET also answers HEAD. */
  match(method: string, path: string): Match {
    const segments = path.split('/');
    const wanted = method === 'HEAD' ? 'GET' : method;
    let allow: string | null = null;
    for (const entry of this.#entries) {
      const params = matchSegments(entry.segments, segments);
      if (params === null) continue;
      const route = entry.routes.find((candidate) => candidate.method === wanted);
      if (route !== undefined) return { kind: 'route', route, params };
      allow ??= entry.routes.map((known) => (known.method === 'GET' ? 'GET, HEAD' : known.method)).join(', ');
    }
    return allow === null ? { kind: 'not_found' } : { kind: 'method_not_allowed', allow };
  }
}

function matchSegments(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const params: Record<string, string> = {};
  for (let i = 0; i < pattern.length; i++) {
    const expected = pattern[i] as string;
    const actual = segments[i] as string;
    if (!expected.startsWith(':')) {
      if (expected !== actual) return null;
      continue;
    }
    if (actual === '') return null;
    try {
      params[expected.slice(1)] = decodeURIComponent(actual);
    } catch {
      // Invalid percent-encoding: no resource has this name.
      return null;
    }
  }
  return params;
}
