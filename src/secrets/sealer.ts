import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';

const VERSION = 's1';
const ALGORITHM = 'aes-256-gcm';
/** NIST SP 800-38D §8.2: random nonces of 96 bits are safe for 2^32 values under one key. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/**
 * Characters of a key's name within sealed text. If two keys of a list had the same name (chance 2^-64), values would be refused,
 * never mixed up.
 */
const KEY_NAME_CHARS = 16;

/**
 * Encrypts secrets for Postgres with SECRETS_KEY:
 *
 *     s1:<name of the key>:<base64url of nonce, ciphertext, tag>
 *
 * Its context, such as the listing and the header, is authenticated with a text. So nobody who can write to the database can move a
 * secret to a listing of their own, or point its listing elsewhere, and have the secret sent to their service.
 *
 * Tested by test/secrets/sealer.test.ts.
 */
export class Sealer {
  readonly #keys = new Map<string, KeyObject>();
  /** Name of the key that encrypts, or null without a key. */
  readonly #first: string | null;

  /** @param keys  32 bytes each; the first encrypts, all decrypt */
  constructor(keys: readonly Uint8Array[]) {
    for (const bytes of keys) this.#keys.set(nameOf(bytes), createSecretKey(bytes));
    const [first = null] = this.#keys.keys();
    this.#first = first;
  }

  get canSeal(): boolean {
    return this.#first !== null;
  }

  /** @param context what the text belongs to; no two contexts may be the same */
  seal(text: string, context: string): string {
    const name = this.#first;
    if (name === null) throw new Error('no key to encrypt with');
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#keys.get(name) as KeyObject, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(Buffer.from(context));
    const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${VERSION}:${name}:${sealed.toString('base64url')}`;
  }

  /** The text, or null if no key opens it in this context. */
  open(sealed: string, context: string): string | null {
    const [version, name = '', encoded = '', ...more] = sealed.split(':');
    const key = this.#keys.get(name);
    const bytes = Buffer.from(encoded, 'base64url');
    // Node ignores characters that are not base64. Only one spelling of each sealed text is accepted, so that every change to it is
    // noticed.
    if (version !== VERSION || key === undefined || more.length > 0 || bytes.toString('base64url') !== encoded)
      return null;
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(context));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      return decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      // Node has a single error for all texts that are not authentic, and it tells nothing more.
      return null;
    }
  }

  /** Whether the text was sealed with the key that encrypts now. */
  isCurrent(sealed: string): boolean {
    return this.#first !== null && sealed.startsWith(`${VERSION}:${this.#first}:`);
  }
}

/** Names a key without revealing anything useful: a key is 256 random bits. */
function nameOf(key: Uint8Array): string {
  return createHash('sha256').update('tollgate secrets key\0').update(key).digest('hex').slice(0, KEY_NAME_CHARS);
}
