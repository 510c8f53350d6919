import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ApiError } from '../../../src/errors.ts';
import { parseJson } from '../../../src/proxy/mcp/json-text.ts';

const parse = (text: string): unknown => parseJson(Buffer.from(text));

function faultOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return (error as ApiError).code;
  }
  throw new Error('was read');
}

describe('JSON that is parsed to be serialised again', () => {
  it('keeps its meaning, whatever the JSON is', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        expect(JSON.parse(JSON.stringify(parse(text)))).toEqual(JSON.parse(text));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['9007199254740991', '9007199254740991'],
    ['-9007199254740991', '-9007199254740991'],
    // Beyond 2^53 only what is written again with the same digits.
    ['9007199254740992', '9007199254740992'],
    ['37128022037917850', '37128022037917850'],
    ['100000000000000000000', '100000000000000000000'],
    ['1.0', '1'],
    ['0.1', '0.1'],
    ['1E2', '100'],
    ['0.10000000000000001', '0.1'],
    ['0.30000000000000004', '0.30000000000000004'],
    ['5e-324', '5e-324'],
    ['0e999', '0'],
    ['"12345678901234567890"', '"12345678901234567890"'],
    ['"\\"12345678901234567890"', '"\\"12345678901234567890"'],
    ['"\\ud83d"', '"\\ud83d"'],
  ])('keeps %s', (text, written) => {
    expect(JSON.stringify(parse(`{"a":[${text}]}`))).toBe(`{"a":[${written}]}`);
  });

  it.each([
    '9007199254740993',
    '-9007199254740993',
    '37128022037917848',
    '12345678901234567890',
    '1e400',
    '-1E+400',
    '1e-400',
    '0.123456789012345678',
    '123456789.1234567891',
    `1${'0'.repeat(400)}`,
  ])('is refused if it contains %s, which would arrive as another number', (text) => {
    expect(faultOf(() => parse(`{"a":[${text},1]}`))).toBe('invalid_request');
    expect(faultOf(() => parse(text))).toBe('invalid_request');
  });

  it('accepts every number that a program prints for a double', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        for (const text of [JSON.stringify(value), value.toExponential(16)]) expect(parse(text)).toBe(value + 0 || 0);
      }),
    );
  });

  it('accepts an integer exactly if the same digits arrive', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }), (value) => {
        const text = String(value);
        if (String(Number(value)) === text) expect(JSON.stringify(parse(text))).toBe(text);
        else expect(faultOf(() => parse(text))).toBe('invalid_request');
      }),
    );
  });

  it('may have a hundred levels and no more, not counting brackets in strings', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
    expect(JSON.stringify(parse(nested(100)))).toBe(nested(100));
    expect(faultOf(() => parse(nested(101)))).toBe('invalid_request');
    expect(faultOf(() => parse('{"a":'.repeat(101)))).toBe('invalid_request');
    expect(faultOf(() => parse('['.repeat(1_000_000)))).toBe('invalid_request');
    expect(parse(JSON.stringify('[{"'.repeat(200)))).toBe('[{"'.repeat(200));
    expect(parse(`[${'[],'.repeat(200)}[]]`)).toHaveLength(201);
  });

  it('may have ten thousand members and a hundred thousand values, and no more: they would take long to check', () => {
    const members = (count: number): string => `{${Array.from({ length: count }, (_, i) => `"${i}":1`).join(',')}}`;
    expect(Object.keys(parse(members(10_000)) as object)).toHaveLength(10_000);
    expect(faultOf(() => parse(members(10_001)))).toBe('invalid_request');
    expect(parse(`[${'1,'.repeat(99_999)}1]`)).toHaveLength(100_000);
    expect(faultOf(() => parse(`[${'1,'.repeat(100_000)}1]`))).toBe('invalid_request');
    // Lists in lists are values without a comma between them.
    const lists = `${'['.repeat(10)}${']'.repeat(10)},`;
    expect(parse(`[${lists.repeat(9_000)}1]`)).toHaveLength(9_001);
    expect(faultOf(() => parse(`[${lists.repeat(9_100)}1]`))).toBe('invalid_request');
    expect(parse(JSON.stringify(',:'.repeat(200_000)))).toHaveLength(400_000);
  });

  it.each([
    ['an unfinished string', '{"a":"'],
    ['an escape at the end', '"\\'],
    ['two values', '{}{}'],
    ['a trailing comma', '[1,]'],
    ['a comment', '{}/**/'],
    ['a number like 01', '[01]'],
    ['NaN', '[NaN]'],
    ['single quotes', "{'a':1}"],
    ['nothing', ' '],
    ['a byte order mark', '\ufeff{}'],
  ])('is refused: %s', (_what, text) => {
    expect(faultOf(() => parse(text))).toBe('invalid_json');
  });

  it.each([
    ['latin1', [0x22, 0xe9, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['half a surrogate pair', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])('is refused if its bytes are not UTF-8: %s', (_what, bytes) => {
    expect(faultOf(() => parseJson(Uint8Array.from(bytes)))).toBe('invalid_json');
  });
});
