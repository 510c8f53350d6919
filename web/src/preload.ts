/** How a browser says that its owner pays for bytes. */
type Connection = { readonly saveData?: boolean };

/** What shows that somebody is about to follow a link: the pointer on it, the keyboard on it, a finger on it. */
const INTENTS = ['pointerover', 'focusin', 'touchstart'] as const;

/** Fetches the files of a page when somebody is about to go there, and never because it might happen. */
export function preloadOnIntent(preload: (path: string) => Promise<unknown> | null): void {
  const isSaving = (): boolean => (navigator as { readonly connection?: Connection }).connection?.saveData === true;
  const follow = ({ target }: Event): void => {
    const link = target instanceof Element ? target.closest<HTMLAnchorElement>('a[href]') : null;
    if (link === null || link.origin !== location.origin || link.download !== '' || isSaving()) return;
    // What did not arrive is asked for again when somebody goes there, and said then.
    preload(link.pathname)?.catch(() => {});
  };
  for (const intent of INTENTS) document.addEventListener(intent, follow, { passive: true });
}
