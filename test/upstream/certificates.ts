import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Identity = { readonly key: Buffer; readonly cert: Buffer };

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=tollgate test'];

/** A certificate authority, made anew for each test file so that the repository contains no private keys. */
export class Authority {
  readonly certificate: Buffer;
  readonly #directory = mkdtempSync(join(tmpdir(), 'tollgate-tls-'));
  #issued = 0;

  constructor() {
    this.#openssl(
      'req',
      '-x509',
      ...NEW_KEY,
      '-days',
      '2',
      '-keyout',
      this.#path('ca.key'),
      '-out',
      this.#path('ca.pem'),
    );
    this.certificate = readFileSync(this.#path('ca.pem'));
  }

  /** @param subjectAltName as openssl spells it: 'DNS:a.example,IP:127.0.0.1'. */
  issue(subjectAltName: string): Identity {
    const [key, request, extensions, certificate] = ['key', 'csr', 'ext', 'pem'].map((suffix) =>
      this.#path(`${this.#issued}.${suffix}`),
    ) as [string, string, string, string];
    this.#issued++;
    this.#openssl('req', ...NEW_KEY, '-keyout', key, '-out', request);
    writeFileSync(extensions, `subjectAltName=${subjectAltName}\n`);
    const authority = ['-CA', this.#path('ca.pem'), '-CAkey', this.#path('ca.key'), '-CAcreateserial'];
    this.#openssl(
      'x509',
      '-req',
      '-in',
      request,
      ...authority,
      '-days',
      '2',
      '-extfile',
      extensions,
      '-out',
      certificate,
    );
    return { key: readFileSync(key), cert: readFileSync(certificate) };
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }

  #openssl(...args: string[]): void {
    execFileSync('openssl', args, { stdio: 'pipe' });
  }
}
