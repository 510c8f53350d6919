import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readReply } from '../../src/admission/reply.ts';

/** With something before and behind it, as in the buffer it is read from. */
const read = (text: string): number[] => readReply(Buffer.from(`9 ${text} 9`), 2, 2 + text.length);

describe('the reply of a batch', () => {
  it('is read as the numbers that were written, whatever their size', () => {
    fc.assert(
      fc.property(fc.array(fc.maxSafeInteger()), (numbers) => {
        expect(read(numbers.join(' ')).map((n) => n + 0)).toEqual(numbers.map((n) => n + 0));
      }),
    );
  });

  it.each(['1e+14', '0 nan', 'OK', '1.5', 'abc'])('is refused when it is none: %s', (text) => {
    expect(() => read(text)).toThrow(/something else than numbers/);
  });
});
