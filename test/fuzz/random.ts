/** @returns a random whole number, at least 0 and less than `below` */
export type Random = (below: number) => number;

/** The generator mulberry32. The same seed gives the same numbers, so that a failure can be repeated. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export const pick = <T>(random: Random, items: readonly T[]): T => items[random(items.length)] as T;

/** Cuts the bytes at up to `most` random positions. */
export function split(random: Random, bytes: Buffer, most: number): Buffer[] {
  const cuts = Array.from({ length: random(most + 1) }, () => random(bytes.length + 1)).sort((a, b) => a - b);
  return [0, ...cuts].map((cut, i) => bytes.subarray(cut, cuts[i] ?? bytes.length));
}
