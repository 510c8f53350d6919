/** How many files are being loaded before anybody has gone to their pages. */
let early = 0;

/** Loads a file that nobody waits for: if that fails, the present page stays. */
export async function loadedEarly<T>(loading: () => Promise<T>): Promise<T> {
  early++;
  try {
    return await loading();
  } finally {
    early--;
  }
}

/**
 * Reloads the page after a gateway of another version has taken over: that gateway does not have the files of this page's version,
 * so pages that are not loaded yet could never be opened. The address is already that of the wanted page.
 */
export function reloadWhenReplaced(): void {
  addEventListener('vite:preloadError', () => {
    // Somebody who only points at a link stays where they are.
    if (early === 0) void reloadIfReplaced();
  });
}

/** A failed network is no reason to reload: the present page is better than none. */
export async function reloadIfReplaced(): Promise<void> {
  // This program's own file. Its name changes with the name of any file that it loads.
  const own = await fetch(import.meta.url, { method: 'HEAD', cache: 'no-store' }).catch(() => null);
  if (own?.status === 404) location.reload();
}
