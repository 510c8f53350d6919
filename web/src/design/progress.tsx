import { signal } from '@preact/signals';

/** How much of what this tab shows is on its way: pages' files, and data that it lacks. */
const underWay = signal(0);

/** Something was asked for that a person waits for. @returns ends that; later calls of it do nothing */
export function begin(): () => void {
  underWay.value++;
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    underWay.value--;
  };
}

/** A thin line on top of the window while something is on its way. What is there within a tenth of a second does not show it. */
export function ProgressBar() {
  return <div class="loading-bar" hidden={underWay.value === 0} aria-hidden="true" />;
}
