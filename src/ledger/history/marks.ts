// What Redis says about the history of its shards: the mark of the last flush, and which data it has.
import type { RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { seeShardsScript } from '../scripts.ts';
import type { Mark, Seen } from './judge.ts';

/** Stands for a mark that cannot be read. No journal has it, so it counts as a flush that Postgres lacks. */
const DAMAGED: Mark = { flushId: 0, token: '00000000-0000-0000-0000-000000000000' };
const MARK = /^([1-9]\d{0,14}) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** A mark in the form stored in Redis; '' for none. */
export const markText = (mark: Mark | null): string => (mark === null ? '' : `${mark.flushId} ${mark.token}`);

export function readMark(text: string): Mark | null {
  if (text === '') return null;
  const [, flushId, token = ''] = MARK.exec(text) ?? [];
  return flushId === undefined ? DAMAGED : { flushId: Number(flushId), token };
}

/** An entry that was read from a shard's stream. */
type ReadEntry = { readonly shard: number; readonly id: string; readonly fields: readonly string[] };

/**
 * Text with which the scripts compare an entry to what was read; '' if it had bytes that are not text, which cannot be compared.
 */
export function entryText(fields: readonly string[]): string {
  const text = fields.join('\t');
  return text.includes('\ufffd') ? '' : text;
}

/** What one Redis says at one instant. */
export type Sight = {
  /** Redis's clock. */
  readonly nowMs: number;
  readonly seen: ReadonlyMap<number, Seen>;
  /** Whether all `entries` are in their streams, unchanged. */
  readonly areAllThere: boolean;
};

/**
 * Looks at shards of one store in one step.
 *
 * @throws ForeignRedis when Redis belongs to another installation
 */
export async function seeShards(
  store: RedisStore,
  keys: RedisKeys,
  shards: readonly number[],
  entries: readonly ReadEntry[] = [],
): Promise<Sight> {
  const names = [...shards.map((shard) => keys.mark[shard]), ...entries.map(({ shard }) => keys.usage[shard])];
  const args = [String(shards.length), ...entries.flatMap(({ id, fields }) => [id, entryText(fields)])];
  const reply = await store.script(seeShardsScript, names.length, [...(names as string[]), ...args]);
  const [nowMs, dataId, areAllThere, ...marks] = reply as [number, string, number, ...string[]];
  return {
    nowMs,
    seen: new Map(shards.map((shard, i) => [shard, { mark: readMark(marks[i] as string), dataId }])),
    areAllThere: areAllThere === 1,
  };
}
