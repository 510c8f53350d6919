// Checks of calls with idempotency keys: each key of an API key is charged at most once, a replay repeats the first answer and nothing
// else, and callers are refused only where they have to be. The path of a call has its idempotency key, so the records are judged
// without what callers were told.

import type { ErrorCode } from '../../src/errors.ts';
import { claimOf } from '../../src/replay/idempotency-key.ts';
import { untilAnswered } from './answered.ts';
import type { Row } from './books.ts';
import type { Told } from './callers.ts';
import type { Buyer } from './market.ts';
import type { Stack } from './stack.ts';
import { idempotencyKeyOf } from './wishes.ts';

/** What only a repeat may be told. */
export const OF_REPEATS: readonly ErrorCode[] = ['call_in_progress', 'idempotency_mismatch', 'answer_not_kept'];

/** Whether the call moved nothing: another one has its idempotency key. */
export const isKeptOut = ({ isReplayed, code }: Told): boolean => isReplayed || OF_REPEATS.some((one) => one === code);

/** Longer answers are not kept (REPLAY_MAX_BYTES); those of `/large/` are. */
const IS_LONG = /^\/large\//;

export type Evidence = {
  readonly told: readonly Told[];
  readonly rows: readonly Row[];
  readonly seen: ReadonlySet<string>;
  /** Whether a store may have lost the claim of this call, or its record. */
  readonly mayBeForgotten: (accountId: string, usageId: string) => boolean;
  /** Whether an answer may be lost, or late, because of a fault between it and Redis. */
  readonly mayLoseAnswers: boolean;
  /** Whether records are in the order in which their calls were admitted. */
  readonly isOrdered: boolean;
};

/** A claim that Redis has. */
export type Kept = { readonly state: string; readonly usageId: string; readonly bodyDigest: string };

/** Everything that has one idempotency key of one API key. */
type Group = { readonly accountId: string; readonly claim: string; readonly told: Told[]; readonly rows: Row[] };

/** To be called when nothing is under way. @returns in words what is wrong */
export async function checkRepeats(stack: Stack, buyers: readonly Buyer[], evidence: Evidence): Promise<string[]> {
  const kept = await Promise.all(buyers.map(({ key }) => readClaims(stack, key.account_id)));
  return judgeRepeats(evidence, new Map(kept.flat()));
}

/** @param kept  the claims of all accounts, by their names */
export function judgeRepeats(evidence: Evidence, kept: ReadonlyMap<string, Kept>): string[] {
  const groups = groupsOf(evidence);
  const known = new Set(groups.map(({ claim }) => claim));
  const recorded = new Set(evidence.rows.map(({ usageId }) => usageId));
  return [
    ...groups.flatMap((group) => [
      ...faultsOfRows(group, evidence),
      ...faultsOfClaim(group, kept.get(group.claim), evidence),
      ...group.told.flatMap((call) => {
        const why = faultOfAnswer(call, group, evidence);
        return why === null ? [] : [`${why}: ${JSON.stringify({ call, rows: group.rows })}`];
      }),
    ]),
    ...evidence.told.flatMap((call) => {
      const why = faultOfAny(call, recorded, evidence.seen);
      return why === null ? [] : [`${why}: ${JSON.stringify(call)}`];
    }),
    ...Array.from(kept).flatMap(([name, claim]) => (known.has(name) ? [] : [`nobody made ${JSON.stringify(claim)}`])),
  ];
}

function groupsOf({ told, rows }: Pick<Evidence, 'told' | 'rows'>): Group[] {
  const groups = new Map<string, Group>();
  const groupOf = (accountId: string, keyId: string, idempotencyKey: string): Group => {
    const name = `${keyId} ${idempotencyKey}`;
    const { name: claim } = claimOf(keyId, idempotencyKey, { method: '', path: '', query: undefined });
    const group = groups.get(name) ?? { accountId, claim, told: [], rows: [] };
    groups.set(name, group);
    return group;
  };
  for (const call of told)
    if (call.idempotencyKey !== null) groupOf(call.accountId, call.keyId, call.idempotencyKey).told.push(call);
  for (const row of rows) {
    const idempotencyKey = idempotencyKeyOf(row.path);
    if (idempotencyKey !== null) groupOf(row.accountId, row.keyId, idempotencyKey).rows.push(row);
  }
  return [...groups.values()];
}

async function readClaims({ stores: { redis, keys } }: Stack, accountId: string): Promise<[string, Kept][]> {
  const name = keys.claims(keys.shardOf(accountId), accountId);
  const claims = (await untilAnswered(() => redis.command('hgetall', [name]))) as Record<string, string>;
  return Object.entries(claims).map(([field, text]) => {
    const [state = '', usageId = '', , , bodyDigest = ''] = text.split('\t');
    return [field, { state, usageId, bodyDigest }];
  });
}

const isCharged = ({ outcome }: Row): boolean => outcome === 'completed';

/** A call that is charged keeps the key for good, so it is the last one. */
function faultsOfRows({ accountId, rows }: Group, { mayBeForgotten, isOrdered }: Evidence): string[] {
  const charged = rows.filter((row) => isCharged(row) && !mayBeForgotten(accountId, row.usageId));
  return charged.flatMap((row) => {
    const later = rows.filter(
      (other) => other !== row && (isOrdered ? other.admittedAtMs > row.admittedAtMs : isCharged(other)),
    );
    return later.length === 0 ? [] : [`admitted again: ${JSON.stringify({ row, later })}`];
  });
}

/** What is charged has a claim that says so, and nothing else has one. */
function faultsOfClaim(
  { accountId, rows, told }: Group,
  claim: Kept | undefined,
  { mayBeForgotten }: Evidence,
): string[] {
  const wrong = (why: string): string[] => [`${why}: ${JSON.stringify({ claim, rows })}`];
  const charged = rows.filter((row) => isCharged(row) && !mayBeForgotten(accountId, row.usageId));
  if (claim === undefined) return charged.length === 0 ? [] : wrong('charged, but its key is free');
  if (charged.some(({ usageId }) => usageId !== claim.usageId)) return wrong('charged, but another call has its key');
  if (mayBeForgotten(accountId, claim.usageId)) return [];
  if (charged.length === 0) return wrong('nothing was charged, but the key is not free');
  if (claim.state !== 'k' && claim.state !== 'n') return wrong('charged, but its claim is still open');
  const first = told.find(({ requestId }) => requestId === claim.usageId);
  const isOfFirst = first === undefined || claim.bodyDigest === '-' || claim.bodyDigest === first.bodyDigest;
  return isOfFirst ? [] : wrong('the claim has the digest of another body');
}

/** What each call must be, whether it has an idempotency key or not. */
function faultOfAny(call: Told, recorded: ReadonlySet<string>, seen: ReadonlySet<string>): string | null {
  const { requestId, usageId, servedId, isReplayed, idempotencyKey } = call;
  if (servedId !== null && servedId !== usageId) return 'it has the answer to another call';
  if (idempotencyKey === null && isKeptOut(call)) return 'no key, but kept out';
  if (!isKeptOut(call) || requestId === null) return null;
  if (recorded.has(requestId)) return 'kept out, but there is a record';
  if (seen.has(requestId)) return 'kept out, but the service got it';
  return !isReplayed && usageId !== null ? 'kept out, but told of a call' : null;
}

function faultOfAnswer(call: Told, group: Group, evidence: Evidence): string | null {
  if (call.isReplayed) return faultOfReplay(call, group, evidence);
  if (call.code === null || !isKeptOut(call)) return null;
  const others = group.told.filter((other) => other !== call && other.atMs <= call.endMs && mayHaveClaimed(other));
  if (others.length === 0) return 'kept out, but no other call can have its key';
  if (call.code === 'idempotency_mismatch')
    return others.every((other) => isSameRequest(other, call)) ? 'no mismatch: all other requests are the same' : null;
  if (call.code === 'call_in_progress' || evidence.mayLoseAnswers) return null;
  // An answer may begin before the body has come whole.
  const isNotKept = IS_LONG.test(call.path) || others.some(({ target }) => target.startsWith('POST'));
  return isNotKept ? null : 'the answer is not kept for no reason';
}

const isSameRequest = (a: Told, b: Told): boolean => a.target === b.target && a.bodyDigest === b.bodyDigest;

/** Not one that was refused for another reason: it never had the key. */
const mayHaveClaimed = (call: Told): boolean => call.usageId !== null || call.code === null || call.status >= 500;

function faultOfReplay(call: Told, { accountId, told, rows }: Group, { mayBeForgotten }: Evidence): string | null {
  const { usageId } = call;
  if (usageId === null || usageId === call.requestId) return 'a replay of itself';
  const row = rows.find((one) => one.usageId === usageId);
  if (row === undefined) return mayBeForgotten(accountId, usageId) ? null : 'a replay of what is not recorded';
  if (!isCharged(row)) return mayBeForgotten(accountId, usageId) ? null : 'a replay of what was given back';
  const same = told.filter((other) => other !== call && isSameRequest(other, call));
  const first = told.find((other) => other.requestId === usageId);
  if (first === undefined) {
    if (!same.some(({ requestId }) => requestId === null)) return 'a replay of another request';
  } else if (!same.includes(first)) return 'a replay of another request';
  if (!call.complete) return null;
  if (call.amountMicros !== row.amountMicros || call.isHeld) return 'the replay says that it cost something else';
  if (call.servedId === null) return 'a replay of no answer of the service';
  // Each one says the same, the first call only if it was known at its beginning what it would cost.
  const alike = told.filter((one) => one.complete && one.usageId === usageId && (one.isReplayed || !one.isHeld));
  if (alike.some((one) => one.answerDigest !== call.answerDigest || one.status !== call.status))
    return 'the replay is another answer';
  if (alike.some(({ costs }) => costs.join('\n') !== call.costs.join('\n'))) return 'the replay tells of another cost';
  const body = first?.complete ? first.answerDigest : call.answerDigest;
  return body === call.answerDigest ? null : 'the replay has another body';
}
