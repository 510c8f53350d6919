import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { schemaRows } from '../../web/src/site/service-schema-rows.ts';

const row = (name: string, more: object = {}) => ({
  name,
  type: 'string',
  required: false,
  description: '',
  limits: [],
  rows: [],
  ...more,
});

describe('a schema as lines', () => {
  it('shows type, necessity, limits and meaning of each property, nested', () => {
    const schema = {
      type: 'object',
      required: ['tags'],
      properties: {
        tags: {
          type: 'array',
          minItems: 1,
          items: { type: 'object', properties: { name: { type: 'string', description: 'A word' } } },
        },
        unit: { type: ['string', 'null'], enum: ['C', 'F'], default: 'C' },
      },
    };
    expect(schemaRows(schema)).toEqual({
      isCut: false,
      rows: [
        row('tags', {
          type: 'array of object',
          required: true,
          limits: [['minItems', '1']],
          rows: [row('name', { description: 'A word' })],
        }),
        row('unit', {
          type: 'string | null',
          limits: [
            ['enum', 'C, F'],
            ['default', 'C'],
          ],
        }),
      ],
    });
  });

  it('shows alternatives, names that are only required, and schemas without parts', () => {
    const { rows } = schemaRows({ required: ['x'], anyOf: [{ type: 'string' }, { properties: { a: {} } }] });
    expect(rows.map(({ name, required }) => [name, required])).toEqual([
      ['x', true],
      ['anyOf 1', false],
      ['anyOf 2', false],
    ]);
    expect(schemaRows({ type: 'string' }).rows).toEqual([row('')]);
    expect(schemaRows({}).rows).toEqual([]);
  });

  it('is bounded, whatever a provider writes', () => {
    let deep: object = { type: 'string' };
    for (let i = 0; i < 60; i++) deep = { properties: { a: deep } };
    expect(schemaRows(deep).isCut).toBe(true);
    const wide = { properties: Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`p${i}`, {}])) };
    expect(schemaRows(wide)).toMatchObject({ isCut: true, rows: { length: 400 } });
    fc.assert(fc.property(fc.jsonValue(), (schema) => void schemaRows(schema)));
    const keyword = fc.constantFrom('properties', 'items', 'required', 'anyOf', 'type', 'enum', 'additionalProperties');
    fc.assert(fc.property(fc.dictionary(keyword, fc.jsonValue()), (schema) => void schemaRows(schema)));
  });
});
