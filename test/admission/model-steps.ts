import fc from 'fast-check';

const account = fc.nat(2);
const id = fc.nat(17);
const key = fc.nat(1);
const instance = fc.nat(1);
const price = fc.constantFrom(0, 1, 400, 1_000, 3_000);
/** What a call priced by use costs at most, and what its caller pays at most. */
const use = fc.option(
  fc.record({ max: fc.constantFrom(3_000, 3_500), ceiling: fc.option(fc.constantFrom(3_000, 3_200), { nil: null }) }),
  { nil: null },
);
const isFreeOnly = fc.constantFrom(false, false, true);
const end = fc.oneof(
  fc.constantFrom('charged' as const, 'refunded' as const),
  fc.constantFrom(0, 1, 399, 400, 2_999, 3_000, 9_007_199_254_740_991),
);
export const quota = fc.constantFrom(0, 2);
const service = fc.nat(1);

/** The commands of one trip. */
const inBatch = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant('admit' as const), id, key, service, price, use, isFreeOnly }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('settle' as const), id, end }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel' as const), id }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('take' as const), account, key }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('lease' as const) }) },
);

export const step = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constant('batch' as const),
      instance,
      parts: fc.array(inBatch, { minLength: 1, maxLength: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('sweep' as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('age' as const), instance }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('loseClaims' as const), account }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('hydrate' as const), account }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('addCredit' as const),
      account,
      amount: fc.integer({ min: 1, max: 2_000 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('applyCredit' as const), account, back: fc.nat(2) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('key' as const),
      account,
      key,
      limit: fc.constantFrom(1, 5, 300),
      active: fc.boolean(),
      tokens: fc.option(fc.constantFrom(0, 59_999, 60_000, 90_000), { nil: null }),
      agoMs: fc.constantFrom(0, 3, 1_000, 100_000),
    }),
  },
);
/** What somebody, or another program, may have written in place of a number. */
const damage = fc.constantFrom(
  '1.5',
  'abc',
  'nan',
  '-nan',
  'inf',
  '-inf',
  '1e5',
  '0x10',
  '007',
  ' 5',
  '-0',
  '',
  '9007199254740993',
  '99999999999999999999',
  '-9223372036854775808',
  '5000',
  '-7',
);

/** Damages the data of the third account: a field, or (`field` null) the whole key. */
export const damageStep = fc.record({
  op: fc.constant('damage' as const),
  what: fc.oneof(
    fc.record({
      of: fc.constant('wallet' as const),
      field: fc.constantFrom('balance', 'credit_seq', 'free:0', 'free:1', null),
    }),
    fc.record({ of: fc.constant('key' as const), field: fc.constantFrom('limit', 'status', 'tokens', 'ts', null) }),
  ),
  key,
  /** null: gone. */
  value: fc.option(damage, { nil: null, freq: 8 }),
});

export type DamageStep = typeof damageStep extends fc.Arbitrary<infer T> ? T : never;
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
export type Part = (Step & { op: 'batch' })['parts'][number];
