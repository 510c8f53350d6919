import { createHash } from 'node:crypto';

/** 1 to 255 visible ASCII characters, optionally in quotes (a string of RFC 9651). The quotes are not part of the key. */
const KEY = /^(?:"([\x21\x23-\x7e]{1,255})"|([\x21\x23-\x7e][\x21-\x7e]{0,254}))$/;

/** @returns null if the value of `Idempotency-Key` is not a valid key */
export function readIdempotencyKey(value: string): string | null {
  const match = KEY.exec(value);
  return match === null ? null : (match[1] ?? match[2] ?? null);
}

const HEADER = 'idempotency-key';

/** @returns the key of a call, if its headers (names in lower case) have exactly one */
export function idempotencyKeyIn(headers: readonly string[]): string | null {
  const isKey = (name: string, i: number): boolean => i % 2 === 0 && name === HEADER;
  const at = headers.findIndex(isKey);
  if (at < 0 || headers.findLastIndex(isKey) !== at) return null;
  return readIdempotencyKey(headers[at + 1] as string);
}

type Called = { readonly method: string; readonly path: string; readonly query: string | undefined };

/** The claim of a call (src/admission/claims.ts). An idempotency key belongs to the API key that sends it. */
export function claimOf(keyId: string, idempotencyKey: string, { method, path, query }: Called) {
  return {
    name: digest(`${keyId}\n${idempotencyKey}`),
    target: digest(`${method}\n${path}\n${query === undefined ? '' : `?${query}`}`),
  };
}

/** 128 bits are enough, because only the holder of the API key chooses what is compared. */
const digest = (text: string): string => createHash('sha256').update(text).digest().toString('base64url', 0, 16);

/** The digest of a request body that is given piece by piece. */
export class BodyDigest {
  /** The digest of an empty body. */
  static readonly EMPTY = new BodyDigest().end();
  readonly #hash = createHash('sha256');

  static of(bytes: Uint8Array): string {
    const digest = new BodyDigest();
    digest.add(bytes);
    return digest.end();
  }

  add(chunk: Uint8Array): void {
    this.#hash.update(chunk);
  }

  end(): string {
    return this.#hash.digest('base64url');
  }
}
