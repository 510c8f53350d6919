/** Up to this size most answers are handed over whole, without asking what the socket took: the cheapest the addon has. */
const MAX_UNCHECKED_BYTES = 8_192;
/**
 * Of these, so many are checked like larger ones, at random. What is handed over unchecked stays with the addon for as long
 * as the caller does not read, and the addon takes its next request all the same: 8 000 unread answers of 60 KB were
 * 470 MB. Nothing tells beforehand that a socket is full, so a caller who asks and never reads is found out by chance,
 * after 16 answers on average, and is a stalled stream from then on: its next request ends the connection.
 */
const CHECKED_SHARE = 1 / 16;
/** A response without a body cannot be probed for a stalled reader. Closing this share bounds the heads a caller can leave unread. */
const CLOSED_SHARE = 1 / 64;

/** Whether a whole answer goes out in a way that tells when the caller does not read. */
export const isChecked = (bytes: number): boolean => bytes > MAX_UNCHECKED_BYTES || Math.random() < CHECKED_SHARE;

/** Whether a response without a body ends its connection though it need not. */
export const closesByChance = (): boolean => Math.random() < CLOSED_SHARE;
