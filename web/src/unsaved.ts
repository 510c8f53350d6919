import { signal } from '@preact/signals';

/** Whether the page that is shown has unsaved changes. */
export const unsaved = signal(false);
