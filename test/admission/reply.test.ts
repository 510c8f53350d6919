import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readReply } from '../../src/admission/reply.ts';

/** Reads a reply with other bytes before and after it, as in the read buffer. */
const read = (text: string, count: number): number[] | Error =>
  readReply(Buffer.from(`9 ${text} 9`), 2, 2 + text.length, count);

describe('the reply of a batch', () => {
  it('is read as the numbers that were written, whatever their size', () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger()), (numbers) => {
        const found = read(numbers.join(' '), numbers.length);
        expect(found).toHaveLength(numbers.length);
        expect((found as number[]).map((n) => n + 0)).toEqual(numbers.map((n) => n + 0));
      }),
    );
  });

  it.each(['1e+14', '0 nan', 'OK', '1.5', 'abc'])('is refused when it is not a list of integers: %s', (text) => {
    expect(read(text, text.split(' ').length)).toMatchObject({ message: expect.stringContaining(text) });
  });

  it.each([0, 1, 3])('is refused when it has another number of integers than expected: %i instead of 2', (count) => {
    expect(read('1 2 3'.slice(0, Math.max(0, 2 * count - 1)), 2)).toBeInstanceOf(Error);
  });
});
