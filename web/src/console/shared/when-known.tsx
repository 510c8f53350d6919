import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** What comes later than this moves what is below it, which is better than to hide what is there. */
const WAITS_MS = 5_000;

/**
 * Shows its children once all that is above them is known, so that they do not move when it comes. They ask for their own data
 * meanwhile.
 */
export function WhenKnown({
  isKnown,
  waiting,
  children,
}: {
  readonly isKnown: boolean;
  readonly waiting: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), WAITS_MS);
    return () => clearTimeout(timer);
  }, []);
  const isShown = isKnown || isLate;
  return (
    <>
      {!isShown && waiting}
      <div class="when-known" hidden={!isShown}>
        {children}
      </div>
    </>
  );
}
