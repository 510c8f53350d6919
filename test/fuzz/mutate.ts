import { pick, type Random } from './random.ts';

/** Pieces of text on which HTTP parsers are known to disagree. */
const MORSELS = [
  '\r\n',
  '\r\n\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  ';',
  ',',
  '0',
  '0\r\n\r\n',
  '5\r\n',
  'ffffffff',
  '-1',
  '\x0b',
  '\xff',
  '\x80',
  'HTTP/1.1',
  'HTTP/1.0',
  ' HTTP/1.1\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
  'Expect: 100-continue\r\n',
  'Host: x\r\n',
  'X: y\r\n z\r\n',
];
const MAX_BYTES = 40_000;

type Change = (random: Random, bytes: Buffer, others: readonly Buffer[]) => Buffer;

const at = (random: Random, bytes: Buffer): number => random(bytes.length + 1);

function replaced(bytes: Buffer, from: number, to: number, by: Uint8Array): Buffer {
  return Buffer.concat([bytes.subarray(0, from), by, bytes.subarray(to)]);
}

function range(random: Random, bytes: Buffer, most: number): [from: number, to: number] {
  const from = at(random, bytes);
  return [from, Math.min(bytes.length, from + 1 + random(most))];
}

const CHANGES: readonly Change[] = [
  // Replaces an octet, or flips one bit of it.
  (random, bytes) => {
    const from = at(random, bytes);
    return replaced(bytes, from, from + 1, Buffer.from([random(256)]));
  },
  (random, bytes) => {
    const from = at(random, bytes);
    return replaced(bytes, from, from + 1, Buffer.from([(bytes[from] ?? 0) ^ (1 << random(8))]));
  },
  (random, bytes) => replaced(bytes, ...range(random, bytes, 8), Buffer.alloc(0)),
  (random, bytes) => {
    const from = at(random, bytes);
    return replaced(bytes, from, from, Buffer.from(pick(random, MORSELS), 'latin1'));
  },
  (random, bytes) => replaced(bytes, ...range(random, bytes, 4), Buffer.from(pick(random, MORSELS), 'latin1')),
  // Repeats a part, copies it somewhere else, or goes on with a part of another sample.
  (random, bytes) => {
    const [from, to] = range(random, bytes, 64);
    return replaced(bytes, to, to, bytes.subarray(from, to));
  },
  (random, bytes) => {
    const [from, to] = range(random, bytes, 32);
    const target = at(random, bytes);
    return replaced(bytes, target, target, bytes.subarray(from, to));
  },
  (random, bytes, others) => {
    const other = pick(random, others);
    return Buffer.concat([bytes.subarray(0, at(random, bytes)), other.subarray(at(random, other))]);
  },
  (random, bytes) => bytes.subarray(0, at(random, bytes)),
];

/** Makes one to four random changes to a random sample. */
export function mutated(random: Random, samples: readonly Buffer[]): Buffer {
  let bytes: Buffer = Buffer.from(pick(random, samples));
  for (let left = 1 + random(4); left > 0; left--) bytes = pick(random, CHANGES)(random, bytes, samples);
  return bytes.subarray(0, MAX_BYTES);
}
