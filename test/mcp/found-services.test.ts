import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fitted } from '../../src/mcp/found-services.ts';

const bytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** The longest listing that can be made: every character of it takes four bytes, or is escaped. */
const longest = (character: string) => ({
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  name: character.repeat(100),
  description: `${character.repeat(200)}…`,
  price: 9_999.999_998,
  max_price: 9_999.999_999,
  free_calls: 1_000_000_000,
  category: 'c'.repeat(50),
  quality: 99.9,
  rated: false,
});
const CATEGORIES = Array.from({ length: 500 }, (_, i) => ({ category: `${'c'.repeat(47)}${i}`, services: 100_000 }));

const page = (services: object[]) => ({
  services,
  categories: CATEGORIES,
  total: 100_000,
  next_cursor: 'n'.repeat(1_000),
});

test.each(['😀', '"', 'a', '漢'])('twenty of the longest services fit into 10 KB: %s', (character) => {
  const found = fitted(page(Array(20).fill(longest(character))), 20);
  expect(bytes(found)).toBeLessThanOrEqual(10_000);
  expect(found).toMatchObject({ total: 100_000, next_cursor: 'n'.repeat(1_000) });
  const [service] = found.services as ReturnType<typeof longest>[];
  expect(service).toMatchObject({ id: longest('').id, price: 9_999.999_998, name: expect.stringContaining(character) });
});

test('more services may take more space, in proportion to their number', () => {
  const found = fitted(page(Array(100).fill(longest('😀'))), 100);
  expect(found.services).toHaveLength(100);
  expect(bytes(found)).toBeLessThanOrEqual(50_000);
});

test('texts are cut no more than needed, and never within a character', () => {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 });
  const service = fc.record({ name: text, description: text });
  fc.assert(
    fc.property(fc.array(service, { maxLength: 20 }), (services) => {
      const found = fitted({ ...page(services), categories: [] }, 20);
      expect(bytes(found)).toBeLessThanOrEqual(10_000);
      for (const [i, { name, description }] of (found.services as typeof services).entries()) {
        expect([name, description].every((shown) => shown.isWellFormed())).toBe(true);
        expect(services[i]?.description.startsWith(description.replace(/…$/, ''))).toBe(true);
      }
      if (bytes({ ...page(services), categories: [] }) <= 10_000) expect(found.services).toEqual(services);
    }),
  );
});

test('a description that /discover has cut keeps its single ellipsis', () => {
  const services = [{ name: 'a', description: `${'d'.repeat(200)}…` }];
  expect(fitted(page(services), 20).services).toEqual(services);
});
