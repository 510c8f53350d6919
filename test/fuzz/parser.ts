// Feeds random octets to the response parser. With any input, the parser must not throw, must read only what it was given, and
// must find the same however the input is cut into reads.

import { ResponseParser } from '../../src/upstream/response-parser.ts';
import { CHUNKED, HEAD, MALFORMED_BODIES, MALFORMED_HEADS } from '../upstream/malformed-responses.ts';
import { mutated } from './mutate.ts';
import { pick, type Random, seeded, split } from './random.ts';

const IN_ORDER = [
  `${HEAD}Content-Length: 5\r\n\r\nhello`,
  `${HEAD}X: y\r\nSet-Cookie: a\r\n\r\nuntil the end`,
  `${CHUNKED}5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\n`,
  `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${HEAD}Content-Length: 2\r\n\r\nok`,
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok',
];
const SAMPLES = [...IN_ORDER, ...[...MALFORMED_HEADS, ...MALFORMED_BODIES].map(([, wire]) => wire)].map((wire) =>
  Buffer.from(wire, 'latin1'),
);
const MAX_HEAD_BYTES = 2_048;
const TOO_LARGE = 'head too large';

type Reading = { readonly state: string; readonly malformed: string; readonly head: string; readonly body: string };

/**
 * @param poison octets before and behind the input in the shared buffer, which must neither be read nor changed
 * @throws when the parser throws, or goes beyond its input
 */
function read(pieces: readonly Buffer[], isHead: boolean, poison: Buffer): Reading {
  let head = '';
  const body: Buffer[] = [];
  const parser = new ResponseParser(
    {
      onParsedHead: ({ status, headers, framing, keepAlive, contentLength }) => {
        head += JSON.stringify([status, headers, framing, keepAlive, contentLength]);
      },
      onParsedBody: (chunk) => body.push(Buffer.from(chunk)),
    },
    MAX_HEAD_BYTES,
  );
  parser.begin(isHead);
  for (const piece of pieces) {
    const shared = Buffer.concat([poison, piece, poison]);
    const [start, end] = [poison.length, poison.length + piece.length];
    const used = parser.execute(shared, start, end);
    if (used < start || used > end) throw new Error(`used ${used} of ${start}…${end}`);
    if (!shared.subarray(0, start).equals(poison) || !shared.subarray(end).equals(poison)) {
      throw new Error('wrote outside of its input');
    }
    const mayStop = parser.state === 'failed' || parser.state === 'done';
    if (used < end && !mayStop) throw new Error(`left input unread while ${parser.state}`);
    if (mayStop) break;
  }
  const { state, malformed } = parser;
  return { state, malformed, head, body: Buffer.concat(body).toString('latin1') };
}

/** Reads one input whole and in pieces, with different octets around it. @throws an error that says how the results differ */
function tryInput(random: Random, wire: Buffer): void {
  const isHead = random(8) === 0;
  // The parser sees a fault within a line at once if the line came whole, but only at the end of the line if it came in pieces.
  // So the input gets line ends here.
  const bytes = Buffer.concat([wire, Buffer.from('\n\n')]);
  const found = read([bytes], isHead, Buffer.from('HTTP/1.1 500 stale\r\n\r\n'));
  const whole = JSON.stringify(found);
  const ways = [[bytes], split(random, bytes, 6), [...bytes].map((octet) => Buffer.from([octet]))];
  const poison = pick(random, [Buffer.from('\r\n\r\n0\r\n\r\n'), Buffer.alloc(16), Buffer.from('ffffff')]);
  for (const pieces of ways) {
    const reading = read(pieces, isHead, poison);
    const again = JSON.stringify(reading);
    // When a line is both malformed and too long, the reason depends on which fault the parser sees first.
    const isTooLong = found.state === 'failed' && [found, reading].some(({ malformed }) => malformed === TOO_LARGE);
    if (again !== whole && !(isTooLong && again === JSON.stringify({ ...found, malformed: reading.malformed }))) {
      const lengths = pieces.length > 10 ? 'octets' : pieces.map(({ length }) => length).join('+');
      throw new Error(`read in ${lengths}: ${again}, whole: ${whole}`);
    }
  }
}

/** Tries random inputs for this long, at least one. @returns how many inputs were tried */
export function fuzzParser(seed: number, seconds: number): number {
  const random = seeded(seed);
  const deadline = performance.now() + seconds * 1000;
  let inputs = 0;
  do {
    const wire = mutated(random, SAMPLES);
    try {
      tryInput(random, wire);
    } catch (error) {
      throw new Error(`seed ${seed}, input ${inputs}: ${JSON.stringify(wire.toString('latin1'))}`, { cause: error });
    }
    inputs++;
  } while (performance.now() < deadline);
  return inputs;
}
