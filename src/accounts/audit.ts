import type { KeyRecord } from '../keys/caller.ts';
import type { Tx } from '../platform/postgres.ts';

/** Who acts: an admin's API key, or the program itself under one of two names. */
export type Actor = {
  /** The id of the API key. */
  readonly actor: string | 'create-admin' | 'system';
  readonly actorAccountId: string | null;
  /** The request that asked for the act, as in its `X-Request-Id`; null if none did. */
  readonly requestId: string | null;
};

type SubjectType = 'account' | 'key' | 'service' | 'call' | 'reconciliation';

/**
 * What was done in the operator's name. `before` and `after` have the fields that changed, as the API shows them, and never contain
 * a secret.
 */
export type Act = Actor & {
  /** The subject and a verb, such as `account.suspend`. */
  readonly action: `${SubjectType}.${string}`;
  readonly subjectType: SubjectType;
  readonly subjectId: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
};

/** 'begun': another act with the same actor and request tells how it ended. 'refused': nothing has changed. */
export const ACT_OUTCOMES = ['begun', 'done', 'refused'] as const;
export type ActOutcome = (typeof ACT_OUTCOMES)[number];

/** The actor of a request that came with an admin's key. */
export function actorOf(key: Pick<KeyRecord, 'keyId' | 'accountId'>, requestId: string): Actor {
  return { actor: key.keyId, actorAccountId: key.accountId, requestId };
}

/** A new account with an admin key. */
export function adminAct(by: Actor, accountId: string): Act {
  const subject = { subjectType: 'account', subjectId: accountId } as const;
  return { ...by, action: 'account.create', ...subject, before: null, after: { role: 'admin' } };
}

/** Stores the act. Call it in the transaction that carries the act out, so that neither is stored without the other. */
export async function recordAct(tx: Tx, act: Act): Promise<void> {
  await insertAct(tx, act, 'done');
}

/**
 * Stores that an act was begun, in the transaction that begins it. A second act tells how it ended.
 *
 * @returns the id that the second act needs
 */
export const recordBegin = (tx: Tx, act: Act): Promise<number> => insertAct(tx, act, 'begun');

async function insertAct(tx: Tx, act: Act, outcome: ActOutcome): Promise<number> {
  const [row] = await tx<{ id: number }[]>`
    INSERT INTO audit (actor, actor_account_id, action, subject_type, subject_id, before, after, request_id, outcome)
    VALUES (${act.actor}, ${act.actorAccountId}, ${act.action}, ${act.subjectType}, ${act.subjectId},
            ${jsonText(act.before)}::text::json, ${jsonText(act.after)}::text::json, ${act.requestId}, ${outcome})
    RETURNING id`;
  return row?.id as number;
}

const jsonText = (state: Act['before']): string | null => (state === null ? null : JSON.stringify(state));
