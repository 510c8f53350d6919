import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  type Fields,
  money,
  optional,
  plain,
  type Row,
  selectList,
  time,
  timeOrNull,
  view,
} from '../../src/platform/fields.ts';
import { TEXT } from '../../src/platform/schemas.ts';

const FIELDS = {
  id: { column: 't.id', audience: 'anyone', ...plain<string>(TEXT), example: 'a' },
  paid: { column: 't.price + 1', audience: 'owner', ...money('What it cost'), example: 0.1 },
  share: { column: 't.share', audience: 'counterpart', ...money('What is left'), example: 0.2 },
  told: { audience: 'counterpart', ...plain<string>(TEXT), example: 'b' },
  at: { column: 't.at', audience: 'admin', ...time(), example: '2026-01-01T00:00:00.000Z' },
  until: { column: 't.until', audience: 'anyone', ...timeOrNull(), example: null },
} as const satisfies Fields;

const values = { id: 'x', paid: 1_500_000, share: 20_000, told: 'y', at: new Date(0), until: null };

describe('a table of fields', () => {
  it('shows each audience its own fields and the public ones, in the order of the table, and shows admins all', () => {
    const owner = view(FIELDS, 'owner');
    expectTypeOf(owner.names).toEqualTypeOf<readonly ('id' | 'paid' | 'until')[]>();
    expect(owner.names).toEqual(['id', 'paid', 'until']);
    expect(Object.entries(owner.json(values))).toEqual([
      ['id', 'x'],
      ['paid', 1.5],
      ['until', null],
    ]);
    expectTypeOf(view(FIELDS, 'counterpart').names).toEqualTypeOf<readonly ('id' | 'share' | 'told' | 'until')[]>();
    expect(view(FIELDS, 'counterpart').names).toEqual(['id', 'share', 'told', 'until']);
    expect(view(FIELDS, 'anyone').names).toEqual(['id', 'until']);
    expectTypeOf(view(FIELDS, 'admin').names).toEqualTypeOf<readonly (keyof typeof FIELDS)[]>();
    expect(view(FIELDS, 'admin').names).toEqual(Object.keys(FIELDS));
  });

  it('omits, everywhere, fields that a view does not use', () => {
    const { names, schemas, example, json } = view(FIELDS, 'admin', ['told', 'id']);
    expectTypeOf(names).toEqualTypeOf<readonly ('paid' | 'share' | 'at' | 'until')[]>();
    for (const each of [schemas, example, json(values)]) expect(Object.keys(each)).toEqual(names);
    expect(names).toEqual(['paid', 'share', 'at', 'until']);
    expect(json(values).at).toBe('1970-01-01T00:00:00.000Z');
  });

  it('omits an optional field that is null', () => {
    const fields = {
      id: FIELDS.id,
      held: { column: 't.held', audience: 'anyone', ...optional(money('Held')) },
    } as const;
    const { json, optional: may } = view(fields, 'anyone');
    expect(may).toEqual(['held']);
    expectTypeOf<Row<typeof fields>['held']>().toEqualTypeOf<number | null>();
    expect(Object.entries(json({ id: 'x', held: 2_000_000 }))).toEqual([
      ['id', 'x'],
      ['held', 2],
    ]);
    expect(Object.keys(json({ id: 'x', held: null }))).toEqual(['id']);
  });

  it('reads the stored fields under their names', () => {
    expectTypeOf<keyof Row<typeof FIELDS>>().toEqualTypeOf<'id' | 'paid' | 'share' | 'at' | 'until'>();
    expect(selectList(FIELDS, ['share', 'at'])).toBe('t.id AS id, t.price + 1 AS paid, t.until AS until');
  });
});
