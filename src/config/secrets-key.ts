/** Standard base64 of exactly 32 bytes. */
const KEY = /^[A-Za-z0-9+/]{43}=$/;

/**
 * The keys in SECRETS_KEY, for AES-256. Faults never contain their bytes: a mistyped key is almost the key.
 *
 * @param entries  of the comma-separated list, trimmed
 */
export function parseSecretsKeys(entries: readonly string[]): {
  readonly keys: readonly Uint8Array[];
  readonly faults: readonly string[];
} {
  const faults: string[] = [];
  entries.forEach((entry, at) => {
    if (!KEY.test(entry)) {
      faults.push(`SECRETS_KEY: key ${at + 1} is not base64 of 32 bytes; \`openssl rand -base64 32\` makes one`);
    } else if (entries.indexOf(entry) < at) faults.push(`SECRETS_KEY: key ${at + 1} is the same as an earlier one`);
  });
  return { keys: faults.length > 0 ? [] : entries.map((entry) => Buffer.from(entry, 'base64')), faults };
}
