/** How a browser says that its user pays for data. */
type Connection = { readonly saveData?: boolean };

/** Events that show that somebody is about to follow a link: the pointer, the keyboard focus or a finger on it. */
const INTENTS = ['pointerover', 'focusin', 'touchstart'] as const;

/** Fetches the files of a page when somebody is about to go there, but not on mere speculation. */
export function preloadOnIntent(preload: (path: string) => Promise<unknown> | null): void {
  const isSaving = (): boolean => (navigator as { readonly connection?: Connection }).connection?.saveData === true;
  const follow = ({ target }: Event): void => {
    const link = target instanceof Element ? target.closest<HTMLAnchorElement>('a[href]') : null;
    if (link === null || link.origin !== location.origin || link.download !== '' || isSaving()) return;
    // A file that did not arrive is requested again, and reported, when somebody goes there.
    preload(link.pathname)?.catch(() => {});
  };
  for (const intent of INTENTS) document.addEventListener(intent, follow, { passive: true });
}
