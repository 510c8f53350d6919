import { randomUUID } from 'node:crypto';
import { type Act, actorOf, recordAct } from '../accounts/audit.ts';
import { unauthorizedError } from '../errors.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { derivedSecret, hashSecret } from '../keys/credentials.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import type { Browser } from './browser.ts';
import {
  type BearerRow,
  confirmBrowser,
  deleteBeyond,
  deleteInReach,
  deleteOfBrowser,
  deleteOfKey,
  insertSession,
  lockSessions,
  moveSessions,
  type SessionRow,
  selectSessions,
  selectSessionsInReach,
  updateBearer,
} from './sessions-sql.ts';

/** How long a person stays signed in with the key of an admin. */
const ADMIN_SECONDS = 12 * 3_600;
/** Maximum accounts signed in in one browser. The ninth ends the session used least recently. */
const MAX_OF_BROWSER = 8;
/** Maximum browsers in which one key is signed in. The key's record has one or two bearers for each. */
const MAX_OF_KEY = 50;

const BEARER_SECONDS = 900;
/** A bearer that is valid for longer than this is handed out again: to all tabs of a browser, and after each reload. */
const FRESH_SECONDS = BEARER_SECONDS / 2;

type Bearer = { readonly secret: string; readonly expiresAt: Date; readonly session: SessionRow };

type SessionsOptions = {
  readonly sql: Sql;
  /** This gateway's own cache. It is told directly, without waiting for the message that tells the other gateways. */
  readonly cache: { invalidate(keyId: string): void };
  /** SESSION_DAYS. */
  readonly sessionDays: number;
};

/**
 * People who are signed in in a browser. A browser (`Browser`) has up to eight sessions, each with a key:
 *
 *     key ──signIn──► session, for days: a cookie ──bearer──► 15 minutes, in the memory of pages
 *
 * A bearer is an additional secret of the key that signed in, so a request with it counts in every respect as a request of that
 * key. It is derived from the browser's secret, which nobody but the browser has: Postgres has hashes. A session lives at most as
 * long as the secret that signed in: revoking or rotating a key ends its sessions.
 *
 * All methods pass on the errors of Postgres.
 *
 * Tested by test/integration/sessions.test.ts and test/web/sessions.test.ts.
 */
export class Sessions {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /**
   * The live sessions of the browser that sends a request, last used first. If the request shows two known browsers, one of them
   * was planted, and the result is empty.
   */
  async of(shown: readonly Browser[]): Promise<readonly SessionRow[]> {
    if (shown.length === 0) return [];
    return ofOne(await selectSessions(this.#options.sql, hashesOf(shown)));
  }

  /**
   * Signs in with a key. The browser gets a new secret and its other sessions move to it, so that an earlier cookie becomes
   * useless. A browser that has not received the cookie of its previous sign-in keeps the one that it shows.
   *
   * @param secret  of the key
   * @param next  the browser with a new cookie
   * @param requestId for the audit, which records the sign-ins of admins
   * @returns the session, the browser whose cookie must be set, and for how many seconds. Null: the browser keeps its cookie, or
   *   has a newer one by now
   */
  async signIn(
    key: KeyRecord,
    secret: string,
    shown: readonly Browser[],
    next: Browser,
    requestId: string,
  ): Promise<{ readonly session: SessionRow; readonly browser: Browser | null; readonly seconds: number }> {
    const { keyId, role } = key;
    const id = randomUUID();
    const seconds = role === 'admin' ? ADMIN_SECONDS : this.#options.sessionDays * 86_400;
    const { rows, browser } = await this.#ending(async (tx) => {
      // Locked, so that of two simultaneous sign-ins the second waits, and finds the sessions that the first has moved.
      const [before] = shown.length === 0 ? [] : ofOne(await lockSessions(tx, hashesOf(shown), FRESH_SECONDS));
      const late = before && lateOf(shown, before);
      const [hash, previousHash] =
        before === undefined
          ? [next.hash, null]
          : late === undefined
            ? [next.hash, before.browser_hash]
            : [before.browser_hash, late.hash];
      const replaced = before === undefined ? [] : await deleteOfKey(tx, before.browser_hash, keyId);
      if (before !== undefined && late === undefined) await moveSessions(tx, before.browser_hash, hash);
      // Another sign-in does not prolong the former cookie: otherwise its holder could keep it alive by signing in again and again.
      const previousUntil = late === undefined ? null : (before?.previous_until ?? null);
      const session = {
        id,
        keyId,
        secretHash: hashSecret(secret),
        browserHash: hash,
        previousHash,
        previousUntil,
        seconds,
      };
      // The key has just been revoked or rotated.
      if (!(await insertSession(tx, session))) throw unauthorizedError();
      if (role === 'admin') await recordAct(tx, signInAct(key, id, requestId));
      const beyond = await deleteBeyond(tx, { browserHash: hash }, MAX_OF_BROWSER);
      const elsewhere = await deleteBeyond(tx, { keyId }, MAX_OF_KEY);
      const result = { rows: await selectSessions(tx, [hash]), browser: late === undefined ? next : null };
      return { ended: [...replaced, ...beyond, ...elsewhere], result };
    });
    const session = rows.find((row) => row.id === id);
    if (session === undefined) throw unauthorizedError();
    return { session, browser, seconds: secondsLeft(rows) };
  }

  /** What a page sends instead of the key. Null if there is no such session. @param id null: the session that was used last */
  async bearer(shown: readonly Browser[], id: string | null): Promise<Bearer | null> {
    return this.#options.sql.begin(async (tx) => {
      const rows = ofOne(await lockSessions(tx, hashesOf(shown), FRESH_SECONDS));
      const session = id === null ? lastUsedOf(rows) : rows.find((row) => row.id === id);
      if (session === undefined) return null;
      const late = lateOf(shown, session);
      const browser = late ?? shown.find(({ hash }) => hash === session.browser_hash);
      if (browser === undefined) return null;
      const isNew =
        late === undefined && rows.some((row) => row.previous_browser_hash !== null && row.previous_until === null);
      if (isNew) await confirmBrowser(tx, session.browser_hash);
      const secretOf = (number: number): string => derivedSecret(browser.secret, `${session.id} ${number}`);
      const present = secretOf(session.bearers);
      // The bearer changes after a sign-in, which gives the browser a new secret.
      if (session.is_fresh && session.bearer_expires_at !== null && hashSecret(present) === session.bearer_hash) {
        return { secret: present, expiresAt: session.bearer_expires_at, session };
      }
      const secret = secretOf(session.bearers + 1);
      const expiresAt = await updateBearer(tx, session.id, hashSecret(secret), BEARER_SECONDS);
      return { secret, expiresAt, session };
    });
  }

  /** The sessions that this browser may end, in any browser; at most 200. */
  inReach(browserHash: string): Promise<SessionRow[]> {
    return selectSessionsInReach(this.#options.sql, browserHash);
  }

  /**
   * Ends sessions: those of this browser and all that it may end elsewhere, or only the one with the id.
   *
   * @returns how many
   */
  end(browserHash: string, which: 'here' | 'everywhere' | { readonly id: string }): Promise<number> {
    return this.#ending(async (tx) => {
      const ended: string[] = [];
      // Elsewhere first, because what may be ended there depends on who is signed in here.
      if (which !== 'here') {
        ended.push(...(await deleteInReach(tx, browserHash, which === 'everywhere' ? null : which.id)));
      }
      if (which === 'here' || which === 'everywhere') ended.push(...(await deleteOfBrowser(tx, browserHash)));
      return { ended, result: ended.length };
    });
  }

  /** Runs the work in a transaction, and then forgets the bearers of the sessions that ended in it. */
  async #ending<T>(work: (tx: Tx) => Promise<{ readonly ended: readonly string[]; readonly result: T }>): Promise<T> {
    const { ended, result } = await this.#options.sql.begin(work);
    for (const keyId of ended) this.#options.cache.invalidate(keyId);
    return result;
  }
}

const hashesOf = (shown: readonly Browser[]): string[] => shown.map(({ hash }) => hash);

/** Empty if they belong to two browsers: the cookie of one of them was planted. */
const ofOne = <Row extends SessionRow>(rows: readonly Row[]): readonly Row[] =>
  rows.every((row) => row.browser_hash === rows[0]?.browser_hash) ? rows : [];

/** The former cookie, if the browser has not received that of its last sign-in; otherwise undefined. */
const lateOf = (shown: readonly Browser[], row: BearerRow): Browser | undefined =>
  shown.some(({ hash }) => hash === row.browser_hash)
    ? undefined
    : shown.find(({ hash }) => hash === row.previous_browser_hash);

const lastUsedOf = <Row extends SessionRow>(rows: readonly Row[]): Row | undefined =>
  rows.toSorted((a, b) => b.last_used_at.getTime() - a.last_used_at.getTime() || (a.id < b.id ? 1 : -1))[0];

const signInAct = (key: KeyRecord, id: string, requestId: string): Act => ({
  ...actorOf(key, requestId),
  action: 'key.sign_in',
  subjectType: 'key',
  subjectId: key.keyId,
  before: null,
  after: { session: id },
});

/** Seconds until the last of these sessions ends by itself. */
export const secondsLeft = (rows: readonly SessionRow[]): number =>
  Math.max(0, ...rows.map((row) => Math.floor((row.expires_at.getTime() - Date.now()) / 1000)));
