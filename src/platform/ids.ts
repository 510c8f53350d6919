import { randomFillSync } from 'node:crypto';

// Random bytes are drawn 16 KiB at a time, so OpenSSL is called once per 2048 ids (8 bytes each) instead of once per id.
const pool = Buffer.allocUnsafe(16_384);
let used = pool.length;

// Under load many ids are made within one millisecond. Writing the time in hexadecimal takes longer than the rest of an id, so it
// is written once per millisecond. This is the millisecond with which `text` begins.
let prefixMs = -1;
/** How many ids this process had made in that millisecond. */
let madeInMs = 0;

/** The two hexadecimal digits of each byte, as character codes. */
const HEX = new Uint8Array(512);
for (let byte = 0; byte < 256; byte++) HEX.set(Buffer.from(byte.toString(16).padStart(2, '0'), 'latin1'), byte * 2);
const text = Buffer.alloc(36, '-', 'latin1');

/**
 * A UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, a counter of 12 bits (§6.2, method 1), then 62 random bits. Ids sort
 * by time, and the first 4096 of a millisecond in the order in which this process made them. The day of a call follows from its
 * id alone (see `dayOfId`).
 */
export function uuidv7(nowMs: number = Date.now()): string {
  if (used + 8 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const p = used;
  used += 8;
  if (nowMs !== prefixMs) {
    const time = nowMs.toString(16).padStart(12, '0');
    text.write(`${time.slice(0, 8)}-${time.slice(8)}-`, 'latin1');
    prefixMs = nowMs;
    madeInMs = 0;
  }
  putHex(14, 0x70 | ((madeInMs >> 8) & 0x0f));
  putHex(16, madeInMs & 0xff);
  madeInMs++;
  putHex(19, 0x80 | ((pool[p] as number) & 0x3f));
  putHex(21, pool[p + 1] as number);
  for (let i = 0; i < 6; i++) putHex(24 + 2 * i, pool[p + 2 + i] as number);
  // This makes one flat string. V8 would store a concatenated id as its pieces, and join them each time the id is written.
  return text.toString('latin1');
}

function putHex(at: number, byte: number): void {
  text[at] = HEX[2 * byte] as number;
  text[at + 1] = HEX[2 * byte + 1] as number;
}

/** When a UUIDv7 was made, in milliseconds since the epoch. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The UTC day (`YYYY-MM-DD`) to which a UUIDv7 belongs: the partition key of `calls`. */
export function dayOfId(id: string): string {
  // Years beyond 9999 print as '+010889-…'. Postgres accepts them as '10889-…', without the sign and the zeros.
  return new Date(timeOfId(id)).toISOString().replace(/^\+0*/, '').split('T')[0] as string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text is a UUID in its canonical lower-case form. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
