import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ReplyKind, ReplyReader } from '../../src/platform/redis-replies.ts';

type Reply = readonly [ReplyKind, string];

/** The replies read from these pieces of input. All pieces use the same memory, as they do on a connection. */
function read(pieces: readonly string[]): Reply[] {
  const replies: Reply[] = [];
  const reader = new ReplyReader({
    onReply: (kind, bytes, start, end) => replies.push([kind, bytes.toString('latin1', start, end)]),
  });
  const memory = Buffer.alloc(4096);
  for (const piece of pieces) reader.read(memory, memory.fill('?').write(piece, 'latin1'));
  return replies;
}

const line = fc.string({ unit: fc.constantFrom(...'abc $*+-:019'), maxLength: 12 });
const text = fc.string({ unit: fc.constantFrom(...'abc\r\n$+-:019'), maxLength: 40 });
const reply: fc.Arbitrary<{ wire: string; reads: Reply }> = fc.oneof(
  line.map((s) => ({ wire: `+${s}\r\n`, reads: ['text', s] as const })),
  line.map((s) => ({ wire: `-ERR ${s}\r\n`, reads: ['error', `ERR ${s}`] as const })),
  fc.maxSafeInteger().map((n) => ({ wire: `:${n}\r\n`, reads: ['text', String(n)] as const })),
  text.map((s) => ({ wire: `$${s.length}\r\n${s}\r\n`, reads: ['text', s] as const })),
  fc.constant({ wire: '$-1\r\n', reads: ['text', ''] as const }),
);

describe('replies of Redis', () => {
  it('are read as they were sent, however the input is split', () => {
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 8 }), fc.array(fc.nat(), { maxLength: 6 }), (replies, cuts) => {
        const wire = replies.map(({ wire }) => wire).join('');
        const at = cuts.map((cut) => cut % (wire.length + 1)).sort((a, b) => a - b);
        const pieces = [...at, wire.length].map((end, i) => wire.slice(i === 0 ? 0 : at[i - 1], end));
        expect(read(pieces)).toEqual(replies.map(({ reads }) => reads));
      }),
    );
  });

  it('are read identically at every possible split', () => {
    const wire = '+OK\r\n$5\r\n1 2\r\n\r\n-ERR no\r\n$0\r\n\r\n:7\r\n';
    const whole = read([wire]);
    expect(whole.map(([, s]) => s)).toEqual(['OK', '1 2\r\n', 'ERR no', '', '7']);
    for (let cut = 0; cut <= wire.length; cut++) expect(read([wire.slice(0, cut), wire.slice(cut)])).toEqual(whole);
    expect(read(wire.split(''))).toEqual(whole);
  });

  it.each(['HTTP/1.1 400 Bad Request\r\n', '*1\r\n$1\r\na\r\n', '$1x\r\n', '$99999999\r\n', '+a\rb\r\n'])(
    'do not include %j',
    (wire) => {
      expect(() => read([wire])).toThrow(/^redis sent/);
    },
  );
});
