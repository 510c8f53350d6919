import { type ComponentChildren, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { useLocation } from 'preact-iso';

/** The address of this page: one interface for the browser and for the gateway, which renders the first view. */
export type Address = {
  /** Path and query. */
  readonly url: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Goes to another page of this site without a load. @param replace going back skips the present page */
  readonly go: (url: string, replace?: boolean) => void;
  /** `https://host` of the gateway. */
  readonly origin: string;
};

const Context = createContext<Address | null>(null);

export function useAddress(): Address {
  const address = useContext(Context);
  if (address === null) throw new Error('no address');
  return address;
}

let beforeMove: ((event: PopStateEvent) => void) | null = null;
// Added right now, because a window calls its listeners in the order in which they were added, and the router's comes later.
if (typeof document !== 'undefined') addEventListener('popstate', (event) => beforeMove?.(event));

/** Lets a page stop a move through the history before the router sees it. @returns a function that ends this */
export function onMove(listener: (event: PopStateEvent) => void): () => void {
  beforeMove = listener;
  return () => {
    if (beforeMove === listener) beforeMove = null;
  };
}

/** The address in a browser. */
export function BrowserAddress({ children }: { readonly children: ComponentChildren }) {
  const { url, path, route } = useLocation();
  return (
    <Context.Provider
      value={{
        ...addressOf(url, path),
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
 * An address stays in the history, in logs, and with everyone it is shared with. Somebody who searches for a key may paste it with
 * its secret: only its id is kept.
 */
const withoutSecrets = (url: string): string => url.replace(/(:|%3A)?sk_[0-9A-Za-z]{49}/gi, '');

/** The address of the first view, which never changes. */
export function FixedAddress({
  url,
  origin,
  children,
}: {
  readonly url: string;
  readonly origin: string;
  readonly children: ComponentChildren;
}) {
  const [path = '/'] = url.split('?');
  return <Context.Provider value={{ ...addressOf(url, path), go() {}, origin }}>{children}</Context.Provider>;
}

function addressOf(url: string, path: string): Pick<Address, 'url' | 'path' | 'query'> {
  const at = url.indexOf('?');
  return { url, path, query: new URLSearchParams(at === -1 ? '' : url.slice(at + 1)) };
}

const OFFERED = /^(en|zh|ja|ko|es|de|fr)(-|$)/i;

/** A link within the site keeps the language that the reader chose. */
export function useHref(): (path: string) => string {
  const { query } = useAddress();
  const lang = query.get('lang');
  return (path) => {
    // With a language that the gateway does not have, every link would lead to an error.
    if (lang === null || !OFFERED.test(lang)) return path;
    const [before, hash = ''] = path.split('#');
    const separator = before?.includes('?') ? '&' : '?';
    return `${before}${separator}lang=${encodeURIComponent(lang)}${hash === '' ? '' : `#${hash}`}`;
  };
}

/** The address with some parameters changed; null or '' removes one. */
export function withQuery(address: Address, changes: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams(address.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return text === '' ? address.path : `${address.path}?${text}`;
}
