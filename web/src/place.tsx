import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { useLocation } from 'preact-iso';

/** Where this page is: the same in a browser and where the gateway writes the first view. */
export type Place = {
  /** Path and query. */
  readonly url: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Goes to another page of ours without a load. @param replace  going back skips the present page */
  readonly go: (url: string, replace?: boolean) => void;
  /** `https://host` of the gateway. */
  readonly origin: string;
};

const Context = createContext<Place | null>(null);

export function usePlace(): Place {
  const place = useContext(Context);
  if (place === null) throw new Error('no place');
  return place;
}

let beforeMove: ((event: PopStateEvent) => void) | null = null;
// At this moment, because a window calls its listeners in the order in which they came, and the router's comes later.
if (typeof document !== 'undefined') addEventListener('popstate', (event) => beforeMove?.(event));

/** Lets a page stop a move through the history before the router learns of it. @returns ends that */
export function onMove(listener: (event: PopStateEvent) => void): () => void {
  beforeMove = listener;
  return () => {
    if (beforeMove === listener) beforeMove = null;
  };
}

/** In a browser. */
export function BrowserPlace({ children }: { readonly children: ComponentChildren }) {
  const { url, path, route } = useLocation();
  return (
    <Context.Provider
      value={{
        ...placeOf(url, path),
        go: (to, replace) => {
          route(withoutSecrets(to), replace);
          // The router does so for an address of its own in the history.
          if (replace && to.split(/[?#]/)[0] !== path) scrollTo(0, 0);
        },
        origin: location.origin,
      }}
    >
      {children}
    </Context.Provider>
  );
}

/**
 * An address stays in the history, in logs, and with everyone it is shared with. Somebody who looks for a key may paste it with its
 * secret: what is left of it is its id.
 */
const withoutSecrets = (url: string): string => url.replace(/(:|%3A)?sk_[0-9A-Za-z]{49}/gi, '');

/** Of the first view: nobody goes anywhere from there. */
export function FixedPlace({
  url,
  origin,
  children,
}: {
  readonly url: string;
  readonly origin: string;
  readonly children: ComponentChildren;
}) {
  const [path = '/'] = url.split('?');
  return <Context.Provider value={{ ...placeOf(url, path), go() {}, origin }}>{children}</Context.Provider>;
}

function placeOf(url: string, path: string): Pick<Place, 'url' | 'path' | 'query'> {
  const at = url.indexOf('?');
  return { url, path, query: new URLSearchParams(at === -1 ? '' : url.slice(at + 1)) };
}

const OFFERED = /^(en|zh|ja|ko|es|de|fr)(-|$)/i;

/** A link within the site keeps the language that its reader chose. */
export function useHref(): (path: string) => string {
  const { query } = usePlace();
  const lang = query.get('lang');
  return (path) => {
    // One that the gateway does not have would make an error of every link.
    if (lang === null || !OFFERED.test(lang)) return path;
    const [before, hash = ''] = path.split('#');
    const separator = before?.includes('?') ? '&' : '?';
    return `${before}${separator}lang=${encodeURIComponent(lang)}${hash === '' ? '' : `#${hash}`}`;
  };
}

/** The address with some parameters changed; null or '' removes one. */
export function withQuery(place: Place, changes: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams(place.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === '' ? place.path : `${place.path}?${text}`;
}
