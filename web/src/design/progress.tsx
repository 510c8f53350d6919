import { signal } from '@preact/signals';

/** How many things this tab is loading: files of pages, and missing data. */
const underWay = signal(0);

/** A person is now waiting for something. @returns a function that ends this; calling it again does nothing */
export function begin(): () => void {
  underWay.value++;
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    underWay.value--;
  };
}

/**
 * A thin line on top of the window while something is loading. It is not shown for anything that loads within a tenth of a second.
 */
export function ProgressBar() {
  return <div class="loading-bar" hidden={underWay.value === 0} aria-hidden="true" />;
}
