import { createContext } from 'preact';
import { useContext, useRef } from 'preact/hooks';

/** The answers of the API that a page came with, by name: see `PageRequest.data`. They are valid only for its first view. */
export type FirstData = Map<string, unknown>;

const Context = createContext<FirstData>(new Map());
export const FirstDataProvider = Context.Provider;

/** The data with this name that the page came with, valid for the whole visit; null: none. */
export function useFact<T>(name: string): T | null {
  return (useContext(Context).get(name) as T | undefined) ?? null;
}

/** The data with this name that the page came with, once; null afterwards. */
export function useFirstData<T>(name: string): T | null {
  const all = useContext(Context);
  const taken = useRef<T | null | undefined>(undefined);
  if (taken.current === undefined) {
    taken.current = (all.get(name) as T | undefined) ?? null;
    // The gateway renders once and throws its map away; in the browser a later visit must ask again.
    if (typeof document !== 'undefined') all.delete(name);
  }
  return taken.current;
}
