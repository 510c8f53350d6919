import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changeOf, draftOf, EMPTY_DRAFT, faultsOf, newKeyOf } from '../../web/src/console/keys/draft.ts';
import { activeBelow, countOf, type Key, type KeyNode, keyTree } from '../../web/src/console/keys/tree.ts';

const keyOf = (id: string, parent: string | null = null, more: Partial<Key> = {}): Key => ({
  key_id: id,
  role: 'buyer',
  owner_id: 'acme',
  rate_limit: 60,
  account_id: '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d10',
  status: 'active',
  created_at: '2026-11-23T10:00:00Z',
  previous_secret_expires_at: null,
  by_operator: false,
  last_used_at: null,
  ...(parent === null ? {} : { parent_key_id: parent }),
  ...more,
});

const shape = (nodes: readonly KeyNode[]): unknown[] =>
  nodes.map(({ key, below }) => (below.length === 0 ? key.key_id : [key.key_id, shape(below)]));

describe('the tree of keys', () => {
  it('has each key below its parent, in the order of the list', () => {
    const keys = [keyOf('f', 'b'), keyOf('e', 'c'), keyOf('d'), keyOf('c', 'a'), keyOf('b', 'a'), keyOf('a')];
    const tree = keyTree(keys);
    expect(shape(tree)).toEqual([
      'd',
      [
        'a',
        [
          ['c', ['e']],
          ['b', ['f']],
        ],
      ],
    ]);
    expect(tree[1]?.below[0]?.below[0]?.chain).toEqual(['a', 'c', 'e']);
    expect(countOf(tree)).toBe(6);
  });

  it('starts with keys whose parent is not in the list, and says which key is above them', () => {
    const tree = keyTree([keyOf('c', 'b'), keyOf('b', 'me')]);
    expect(shape(tree)).toEqual([['b', ['c']]]);
    expect(tree[0]?.below[0]?.chain).toEqual(['me', 'b', 'c']);
  });

  it('has every key once, whichever keys are missing', () => {
    // Each key has at most one older key as its parent; the list is newest first, and ends anywhere.
    const forests = fc.array(fc.option(fc.nat(), { nil: null }), { maxLength: 60 });
    fc.assert(
      fc.property(forests, fc.nat(60), (parents, length) => {
        const keys = parents
          .map((parent, i) => keyOf(`${i}`, parent === null || i === 0 ? null : `${parent % i}`))
          .reverse()
          .slice(0, length);
        const all = (nodes: readonly KeyNode[]): Key[] => nodes.flatMap(({ key, below }) => [key, ...all(below)]);
        const tree = keyTree(keys);
        expect(
          all(tree)
            .map(({ key_id: id }) => id)
            .sort(),
        ).toEqual(keys.map(({ key_id: id }) => id).sort());
        const visit = (node: KeyNode): void => {
          expect(activeBelow(keys, node.key.key_id).length).toBe(countOf(node.below));
          node.below.forEach(visit);
        };
        tree.forEach(visit);
      }),
    );
  });

  it('lets a key expire with the earliest of the keys above it', () => {
    const late = { expires_at: '2026-12-02T00:00:00Z' };
    const early = { expires_at: '2026-12-01T00:00:00+00:00' };
    const [root] = keyTree([keyOf('c', 'b', late), keyOf('b', 'a', early), keyOf('a')]);
    expect(root?.expiresAt).toBeNull();
    expect(root?.below[0]?.below[0]?.expiresAt).toBe(early.expires_at);
  });

  it('leaves a key no more than the budgets above it do', () => {
    const left = (remaining: number): Partial<Key> => ({
      budget: { amount: 9, period: 'day', spent: 9 - remaining, remaining, resets_at: null, refused: 0 },
    });
    const keys = [keyOf('d', 'c', left(5)), keyOf('c', 'b'), keyOf('b', 'a', left(2)), keyOf('a', 'me', left(3))];
    const leftAbove = ([node]: readonly KeyNode[]): (number | null)[] =>
      node === undefined ? [] : [node.leftAbove, ...leftAbove(node.below)];
    expect(leftAbove(keyTree(keys))).toEqual([null, 3, 2, 2]);
    expect(leftAbove(keyTree(keys, 1))).toEqual([1, 1, 1, 1]);
  });

  it('ends the active keys below a key together with it, and no others', () => {
    const revoked = { status: 'revoked' } as const;
    const keys = [keyOf('e', 'd'), keyOf('d'), keyOf('c', 'b'), keyOf('x', 'a', revoked), keyOf('b', 'a'), keyOf('a')];
    expect(activeBelow(keys, 'a').map(({ key_id: id }) => id)).toEqual(['b', 'c']);
    expect(activeBelow(keys, 'c')).toEqual([]);
  });
});

describe('the form of a key', () => {
  const SERVICE = '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d11';
  const OTHER = '019aa3f5-0d44-7a61-8c12-5b7e9f3a2d12';
  const limits = {
    label: 'research',
    max_price: 0.000001,
    services: [SERVICE],
    expires_at: '2026-12-01T10:30:00.000Z',
    budget: { amount: 0.5, period: 'week', spent: 0, remaining: 0.5, resets_at: null, refused: 0 },
  } as const;
  const key = keyOf('a', 'b', { ...limits, services: [...limits.services] });

  it('sends only what was filled in', () => {
    expect(newKeyOf(EMPTY_DRAFT)).toEqual({});
    const draft = {
      ...EMPTY_DRAFT,
      label: ' research ',
      amount: '.5',
      rateLimit: '30',
      maxPrice: '0.01',
      services: `https://gate.example/services/${SERVICE}?lang=de\n${SERVICE.toUpperCase()}, ${OTHER}`,
      expires: '2026-12-01T10:30',
    };
    expect(faultsOf(draft)).toEqual({});
    expect(newKeyOf(draft)).toEqual({
      label: 'research',
      budget: { amount: 0.5, period: 'day' },
      rate_limit: 30,
      max_price: 0.01,
      services: [SERVICE, OTHER],
      expires_at: new Date('2026-12-01T10:30').toISOString(),
    });
  });

  it('shows the current limits of a key, to the micro-dollar and the minute', () => {
    expect(faultsOf(draftOf(key))).toEqual({});
    const { budget, ...others } = limits;
    expect(newKeyOf(draftOf(key))).toEqual({
      ...others,
      rate_limit: 60,
      budget: { amount: budget.amount, period: budget.period },
    });
    expect(draftOf(keyOf('a', null, { budget: { ...limits.budget, amount: 100 } })).amount).toBe('100');
  });

  it('changes only what was edited: an emptied limit is removed', () => {
    const before = draftOf(key);
    expect(changeOf(before, before)).toBeNull();
    expect(changeOf(before, { ...before, rateLimit: '' })).toBeNull();
    expect(changeOf(before, { ...before, amount: '2' })).toEqual({ budget: { amount: 2, period: 'week' } });
    expect(changeOf(before, { ...before, label: '', amount: '', maxPrice: '', services: '', expires: '' })).toEqual({
      label: null,
      budget: null,
      max_price: null,
      services: null,
      expires_at: null,
    });
    // A period alone is no budget for a key that has none.
    const without = draftOf(keyOf('a', 'b'));
    expect(changeOf(without, { ...without, period: 'month' })).toBeNull();
  });

  it('explains beside a field what is wrong with the field', () => {
    const faults = faultsOf({
      ...EMPTY_DRAFT,
      amount: '0,50',
      rateLimit: '1.5',
      maxPrice: '10001',
      services: `${SERVICE}\nweather`,
    });
    expect(faults.amount).toContain('a point in place of the comma: 0.50');
    expect(faults.rateLimit).toBe('A whole number of at least 1.');
    expect(faults.maxPrice).toContain('at most $10,000');
    expect(faults.services).toContain('weather');
    expect(faultsOf({ ...EMPTY_DRAFT, amount: '250000' })).toEqual({});
  });
});
