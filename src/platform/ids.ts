import { randomFillSync } from 'node:crypto';

// Random bytes are drawn 4 KiB at a time: one call into OpenSSL per 409 ids instead of one per id.
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

// Under load many ids are made within one millisecond; writing a number in hexadecimal takes longer than all the rest.
let prefixMs = -1;
let prefix = '';

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/**
 * A UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random bits. Ids sort by time, and the day a call belongs
 * to follows from its id alone (see `dayOfId`).
 */
export function uuidv7(nowMs: number = Date.now()): string {
  if (used + 10 > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const p = used;
  used += 10;
  if (nowMs !== prefixMs) {
    const time = nowMs.toString(16).padStart(12, '0');
    prefix = `${time.slice(0, 8)}-${time.slice(8)}-`;
    prefixMs = nowMs;
  }
  const b = (i: number): number => pool[p + i] as number;
  const h = (i: number): string => HEX[b(i)] as string;
  return (
    prefix +
    `${HEX[0x70 | (b(0) & 0x0f)]}${h(1)}-${HEX[0x80 | (b(2) & 0x3f)]}${h(3)}-${h(4)}${h(5)}${h(6)}${h(7)}${h(8)}${h(9)}`
  );
}

/** Milliseconds since the epoch at which a UUIDv7 was made. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The UTC day (`YYYY-MM-DD`) a UUIDv7 belongs to: the partition key of `calls`. */
export function dayOfId(id: string): string {
  return new Date(timeOfId(id)).toISOString().slice(0, 10);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text is a UUID in its canonical lower-case form. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
