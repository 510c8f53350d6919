/** Slots of a Redis Cluster. */
export const SLOTS = 16_384;

/**
 * The slot of a key: CRC16 of its hash tag, the first `{…}` that is not empty, or of the whole key (Redis Cluster Specification,
 * 'Key distribution model' and 'Hash tags'). Used when a shard is set up, never for a call.
 */
export function slotOf(key: string): number {
  const from = key.indexOf('{');
  const to = from < 0 ? -1 : key.indexOf('}', from + 1);
  return crc16(to > from + 1 ? key.slice(from + 1, to) : key) % SLOTS;
}

/** CRC-16/XMODEM: polynomial 0x1021, initial value 0. */
function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc;
}

/**
 * Hash tags for shards that spread their slots evenly: shard `i` of `n` has a slot in the middle third of the `i`th of `n` equal
 * ranges. Nodes usually have equal ranges of slots, too. So any number of nodes up to `n` have the same number of shards each, give
 * or take one (less than 4/3 from the mean). Plain numbers as tags leave nodes empty: with 16 shards, 7 of 16 nodes.
 *
 * The tags are in the names of all keys, so the result of this function must never change.
 *
 * Tested by test/platform/cluster/hash-tags.test.ts.
 */
export function evenTags(shards: number): string[] {
  return Array.from({ length: shards }, (_, shard) => {
    const [from, to] = [(shard + 1 / 3) / shards, (shard + 2 / 3) / shards];
    for (let k = 0; ; k++) {
      const tag = `${shard}.${k}`;
      const at = (slotOf(tag) + 0.5) / SLOTS;
      if (at >= from && at < to) return tag;
    }
  });
}
