/**
 * Maximum size of a response, with its header lines, that is sent without asking whether the socket took it: the cheapest way
 * that the addon offers. Larger responses are always sent in a way that tells (checked).
 */
const MAX_UNCHECKED_BYTES = 8_192;
/**
 * The share of the responses up to that size that is checked as well, chosen at random. The addon buffers unchecked responses
 * for as long as the caller does not read them, and accepts the caller's next request all the same: 8 000 unread responses of
 * 60 KB took 470 MB. The addon cannot say before a write that the socket is full. With this share, a caller who asks and never
 * reads is found out after 16 responses on average. Its stream is then stalled, and its next request makes the addon close the
 * connection.
 */
const CHECKED_SHARE = 1 / 16;
/** A response without a body cannot be probed for a stalled reader. Closing this share bounds the heads a caller can leave unread. */
const CLOSED_SHARE = 1 / 64;

/** Whether a whole response of this size must be sent in a way that tells if the caller does not read. */
export const isChecked = (bytes: number): boolean => bytes > MAX_UNCHECKED_BYTES || Math.random() < CHECKED_SHARE;

/** Whether a response without a body must close its connection for no other reason than CLOSED_SHARE. */
export const closesByChance = (): boolean => Math.random() < CLOSED_SHARE;
