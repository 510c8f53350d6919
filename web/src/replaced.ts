/** How many files are on their way before anybody went to what they are for. */
let early = 0;

/** Loads a file that nobody waits for: if it fails, the page that is there stays. */
export async function loadedEarly<T>(loading: () => Promise<T>): Promise<T> {
  early++;
  try {
    return await loading();
  } finally {
    early--;
  }
}

/**
 * Loads the page again when a gateway of another version has taken over: it does not have the files of the one that this page came
 * from, so whatever was not loaded yet could never be opened. The address is already that of the page that was wanted.
 */
export function reloadWhenReplaced(): void {
  addEventListener('vite:preloadError', () => {
    // Somebody who only points at a link stays where they are.
    if (early === 0) void reloadIfReplaced();
  });
}

/** A network that failed is no reason: then the page that is there is worth more than none. */
export async function reloadIfReplaced(): Promise<void> {
  // This program's own file. Its name changes with that of any file that it loads.
  const own = await fetch(import.meta.url, { method: 'HEAD', cache: 'no-store' }).catch(() => null);
  if (own?.status === 404) location.reload();
}
