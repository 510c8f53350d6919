/**
 * What `X-ACF-Tag` may say of a call. None of its characters can end a field of a hold (ledger/usage-event.ts), or takes more than a
 * byte.
 */
export const TAG_PATTERN = '^[A-Za-z0-9._:/@-]{1,64}$';
const TAG = new RegExp(TAG_PATTERN);

export const isTag = (text: string): boolean => TAG.test(text);
