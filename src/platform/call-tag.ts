/**
 * The allowed values of `X-ACF-Tag`. None of the characters can end a field of a hold (ledger/usage-event.ts), and each takes one
 * byte.
 */
export const TAG_PATTERN = '^[A-Za-z0-9._:/@-]{1,64}$';
const TAG = new RegExp(TAG_PATTERN);

export const isTag = (text: string): boolean => TAG.test(text);
