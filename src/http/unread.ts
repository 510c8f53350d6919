/**
 * Maximum size of a response, with its header lines, that may be sent *unchecked*: without asking whether the socket took it, which
 * is the addon's cheapest way. Larger responses are always *checked*: sent in a way that tells.
 */
const MAX_UNCHECKED_BYTES = 8_192;
/**
 * The share of the responses up to MAX_UNCHECKED_BYTES that is checked as well, chosen at random. The addon buffers unchecked
 * responses until the caller reads them, and goes on accepting requests from that caller: 8 000 unread responses of 60 KB took 470
 * MB. The addon cannot say before a write that the socket is full. With this share, a caller that sends requests and never reads is
 * detected after 16 responses on average. Its stream is then stalled, and its next request makes the addon close the connection.
 */
const CHECKED_SHARE = 1 / 16;
/**
 * The share of the responses without a body that close their connection. They cannot be probed for a stalled reader, so this
 * bounds the heads that a caller can leave unread.
 */
const CLOSED_SHARE = 1 / 64;

/** Whether a whole response of this size must be sent in a way that tells if the caller does not read. */
export const isChecked = (bytes: number): boolean => bytes > MAX_UNCHECKED_BYTES || Math.random() < CHECKED_SHARE;

/** Decides by chance, at the rate of CLOSED_SHARE, whether a response without a body must close its connection. */
export const closesByChance = (): boolean => Math.random() < CLOSED_SHARE;
