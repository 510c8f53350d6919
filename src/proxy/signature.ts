import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { SigningKey } from '../secrets/service-secrets.ts';

/** What a signature covers, in this order (docs/api.md, 'Signed calls'). It is fixed: services are told to refuse any other list. */
const COVERED = '("@method" "@authority" "@path" "@query" "x-acf-usage-id" "x-acf-buyer")';

/** A request in the form in which it goes to the service. */
export type SignedRequest = {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly usageId: string;
  readonly buyer: string;
};

type Key = { readonly keyid: string; readonly key: KeyObject; readonly untilMs: number };

/**
 * Signs the calls of one listing (RFC 9421, HMAC-SHA256), so that its service can tell them from requests of others. For a day
 * after a new secret was made, each call has two signatures, one by the new and one by the old secret.
 *
 * A signature takes 7 µs, nearly all of it in OpenSSL; two take 14 µs.
 *
 * Tested by test/proxy/signature.test.ts, and against other implementations by test/integration/service-secrets.test.ts.
 */
export class Signer {
  readonly #authority: string;
  readonly #keys: readonly Key[];

  /** @param authority  the value of `Host`: in lower case, without a default port (RFC 9421 §2.2.3) */
  constructor(authority: string, keys: readonly SigningKey[]) {
    this.#authority = authority;
    this.#keys = keys.map(({ keyid, secret, untilMs }) => {
      return { keyid, key: createSecretKey(Buffer.from(secret, 'ascii')), untilMs };
    });
  }

  /** The header lines `Signature-Input` and `Signature`. */
  lines(request: SignedRequest, nowMs: number): string {
    const base = componentLines(request, this.#authority);
    const created = Math.floor(nowMs / 1000);
    let inputs = '';
    let signatures = '';
    let number = 0;
    for (const { keyid, key, untilMs } of this.#keys) {
      if (nowMs >= untilMs) continue;
      const params = `${COVERED};created=${created};keyid="${keyid}";alg="hmac-sha256"`;
      const signature = createHmac('sha256', key)
        .update(`${base}"@signature-params": ${params}`, 'latin1')
        .digest('base64');
      const separator = number++ === 0 ? '' : ', ';
      inputs += `${separator}sig${number}=${params}`;
      signatures += `${separator}sig${number}=:${signature}:`;
    }
    return `signature-input: ${inputs}\r\nsignature: ${signatures}\r\n`;
  }
}

/** The signature base (RFC 9421 §2.5) without its last line, which names the parameters. */
function componentLines({ method, path, usageId, buyer }: SignedRequest, authority: string): string {
  const mark = path.indexOf('?');
  const [onlyPath, query] = mark === -1 ? [path, '?'] : [path.slice(0, mark), path.slice(mark)];
  return (
    `"@method": ${method}\n"@authority": ${authority}\n"@path": ${onlyPath}\n"@query": ${query}\n` +
    `"x-acf-usage-id": ${usageId}\n"x-acf-buyer": ${buyer}\n`
  );
}
