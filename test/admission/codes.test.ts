import { expect, it } from 'vitest';
import { OK, REFUSALS } from '../../src/admission/codes.ts';
import { batchScript } from '../../src/admission/scripts.ts';

it('the table has a row for every admission code that batch.lua lists, and no other rows', () => {
  const [, listed = ''] =
    /Codes \(mirrored in admission\/codes\.ts\):(.*?)Closing codes/s.exec(batchScript.source) ?? [];
  const codes = Array.from(listed.matchAll(/(?<=\s)(\d+) [A-Z_]{2,}/g), ([, code]) => Number(code));
  expect(codes.sort((a, b) => a - b)).toEqual([OK, ...Object.keys(REFUSALS).map(Number)]);
});
