import type { Schemas } from '../../api/client.ts';

export type Key = Schemas['Key'];

/** A key in the tree of its account's keys. */
export type KeyNode = {
  readonly key: Key;
  /** The ids of the keys above it, the key itself last. */
  readonly chain: readonly string[];
  /** When the first of these keys expires. */
  readonly expiresAt: string | null;
  /** The least that is left of the budgets above it; null: there is none. */
  readonly leftAbove: number | null;
  /** In the order of the list. */
  readonly below: readonly KeyNode[];
};

/** The key at which a branch begins: its parent need not be in the list. */
type Above = Pick<KeyNode, 'chain' | 'expiresAt' | 'leftAbove'>;

/**
 * The keys as trees. A key whose parent is not in the list is a root: a child key sees only the keys below it, and a long list ends
 * before the oldest keys.
 *
 * @param leftAbove  what is left of the budgets above those roots
 */
export function keyTree(keys: readonly Key[], leftAbove: number | null = null): KeyNode[] {
  const byParent = groupByParent(keys);
  const known = new Set(keys.map(({ key_id: id }) => id));
  const nodeOf = (key: Key, above: Above): KeyNode => {
    const here = { chain: [...above.chain, key.key_id], expiresAt: earlier(above.expiresAt, key.expires_at ?? null) };
    const left = [above.leftAbove, key.budget?.remaining ?? null].filter((each) => each !== null);
    const under = { ...here, leftAbove: left.length === 0 ? null : Math.min(...left) };
    const below = (byParent.get(key.key_id) ?? []).map((child) => nodeOf(child, under));
    return { ...here, leftAbove: above.leftAbove, key, below };
  };
  return keys
    .filter(({ parent_key_id: parent }) => parent === undefined || !known.has(parent))
    .map((key) =>
      nodeOf(key, { chain: key.parent_key_id === undefined ? [] : [key.parent_key_id], expiresAt: null, leftAbove }),
    );
}

/** The active keys at any depth below a key. Revoking the key revokes them, too. */
export function activeBelow(keys: readonly Key[], keyId: string): Key[] {
  const byParent = groupByParent(keys);
  const below = (id: string): Key[] => (byParent.get(id) ?? []).flatMap((key) => [key, ...below(key.key_id)]);
  return below(keyId).filter(({ status }) => status === 'active');
}

export const countOf = (nodes: readonly KeyNode[]): number =>
  nodes.reduce((sum, { below }) => sum + 1 + countOf(below), 0);

function groupByParent(keys: readonly Key[]): ReadonlyMap<string, readonly Key[]> {
  const byParent = new Map<string, Key[]>();
  for (const key of keys) {
    if (key.parent_key_id === undefined) continue;
    const siblings = byParent.get(key.parent_key_id);
    if (siblings === undefined) byParent.set(key.parent_key_id, [key]);
    else siblings.push(key);
  }
  return byParent;
}

function earlier(one: string | null, other: string | null): string | null {
  if (one === null || other === null) return one ?? other;
  return Date.parse(one) < Date.parse(other) ? one : other;
}
