import type { ComponentType } from 'preact';
import { useState } from 'preact/hooks';
import { lazy as suspending } from 'preact-iso';
import { ApiFailure } from './api/client.ts';
import { FailureNote, Skeleton } from './design/index.ts';

type Load<P> = () => Promise<{ readonly default: ComponentType<P> }>;

/**
 * A component that is loaded when it is first drawn. When its file does not arrive, it says so, and can be asked for again.
 *
 * @param frame  class of what surrounds that
 */
export function lazy<P extends object>(load: Load<P>, frame = ''): ComponentType<P> & { preload(): Promise<unknown> } {
  // Once it is there after all, for those who come later.
  let late: ComponentType<P> | null = null;
  const First = suspending<ComponentType<P>>(() =>
    load().catch(() => ({
      default: (props: P) => {
        const [Loaded, setLoaded] = useState(() => late);
        if (Loaded !== null) return <Loaded {...props} />;
        const again = async (): Promise<void> => {
          await failedStyles();
          const loaded = (await load()).default;
          late = loaded;
          setLoaded(() => loaded);
        };
        return (
          <div class={frame}>
            <NotLoaded again={again} />
          </div>
        );
      },
    })),
  );
  return First;
}

function NotLoaded({ again }: { readonly again: () => Promise<void> }) {
  const [isTrying, setTrying] = useState(false);
  const retry = async (): Promise<void> => {
    setTrying(true);
    await again().catch(() => setTrying(false));
  };
  if (isTrying) return <Skeleton lines={4} />;
  return <FailureNote failure={NOT_LOADED} retry={() => void retry()} />;
}

const NOT_LOADED = new ApiFailure(
  'network',
  'A part of this page did not arrive. Check the connection, and try again.',
  0,
  null,
);

/** Loads the style sheets again that failed: Vite asks for each of them once. */
async function failedStyles(): Promise<void> {
  const failed = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')].filter(hasFailed);
  await Promise.all(
    failed.map(
      (old) =>
        new Promise((resolve, reject) => {
          const link = old.cloneNode() as HTMLLinkElement;
          link.onload = resolve;
          link.onerror = reject;
          old.replaceWith(link);
        }),
    ),
  );
}

/** All of ours can be read; Chromium gives one that failed a sheet that nobody may read. */
function hasFailed({ sheet }: HTMLLinkElement): boolean {
  try {
    return (sheet?.cssRules.length ?? 0) === 0;
  } catch {
    return true;
  }
}
