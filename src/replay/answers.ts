import { SparseWarning } from '../observability/sparse-warning.ts';
import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { type Answer, decodeAnswer, encodeAnswer } from './answer-text.ts';
import { keepAnswerScript, readAnswerScript } from './scripts.ts';

/** Bounds on what one account keeps. Beyond them its oldest answers are dropped. */
const MAX_ANSWERS = 1_000;
const MAX_ACCOUNT_BYTES = 8_388_608;
/** Share of its Redis's `maxmemory` above which nothing is kept. New calls are refused later (admission/backlog.ts). */
const MAX_MEMORY_SHARE = 0.7;
/**
 * Maximum bytes of answers in this process: those that it is capturing, and those that wait for Redis. Beyond it, answers are not
 * kept.
 */
const MAX_CAPTURED_BYTES = 67_108_864;
/**
 * How long after its charge a call's answer may still be on its way to Redis, since the charge does not wait for it. This is far
 * longer than a command may take by default, so an answer that is missing then was lost.
 */
const BEING_KEPT_MS = 5_000;

/**
 * Why an answer is not kept: it was too long; it began before the whole request had arrived; Redis or the process has no room;
 * Redis did not take it.
 */
export type NotKept = 'too_long' | 'early' | 'no_room' | 'failed';

/** The first call with an idempotency key. */
export type FirstCall = UnderWay | ChargedCall;

/** The call is under way, or its answer is on its way to Redis. */
type UnderWay = { readonly isUnderWay: true; readonly target: string };

export type ChargedCall = {
  readonly isUnderWay: false;
  readonly usageId: string;
  /** What the call cost. Null: Redis has lost how it ended. */
  readonly amountMicros: number | null;
  readonly target: string;
  /** Null: the call was over before its whole request body had arrived. */
  readonly bodyDigest: string | null;
  /** Null: the answer was not kept. */
  readonly answer: Answer | null;
};

type AnswersOptions = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  /** Maximum bytes of the body of one answer; 0: no answers are kept. */
  readonly maxAnswerBytes: number;
  /** Maximum bytes of the answers of all shards together. */
  readonly maxBytes: number;
  /** How much of its `maxmemory` the Redis of a shard uses, from 0 to 1. */
  readonly memoryShare: (shard: number) => number;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * The answers to calls with idempotency keys, in Redis. They are written separately from settlements, so that no charge waits for
 * them, and no settlement is refused because Redis is full. A lost answer costs nobody anything: a repeat is told about it, and not
 * charged.
 *
 * Tested by test/replay/answers.test.ts.
 */
export class Answers {
  readonly maxAnswerBytes: number;
  readonly #options: AnswersOptions;
  readonly #maxShardBytes: number;
  readonly #failures: SparseWarning;
  #capturedBytes = 0;
  readonly #underWay = new Set<Promise<void>>();
  kept = 0;
  readonly notKept = new Map<NotKept, number>([
    ['too_long', 0],
    ['early', 0],
    ['no_room', 0],
    ['failed', 0],
  ]);

  constructor(options: AnswersOptions) {
    this.#options = options;
    this.maxAnswerBytes = options.maxAnswerBytes;
    this.#maxShardBytes = Math.floor(options.maxBytes / options.keys.shards);
    this.#failures = new SparseWarning(options.log);
  }

  /** Counts bytes that a call captures, or (negative) has released. @returns whether there is room for them */
  capture(bytes: number): boolean {
    if (bytes > 0 && this.#capturedBytes + bytes > MAX_CAPTURED_BYTES) return false;
    this.#capturedBytes += bytes;
    return true;
  }

  isNotKept(why: NotKept): void {
    this.notKept.set(why, (this.notKept.get(why) ?? 0) + 1);
  }

  /** @returns whether the answer is being kept; false: it certainly is not */
  keep(accountId: string, usageId: string, answer: Answer): boolean {
    const { keys, memoryShare } = this.#options;
    const shard = keys.shardOf(accountId);
    const text = encodeAnswer(answer);
    // The text stays in memory until Redis has it. It is longer than the body if the body is not text.
    const { length } = text;
    if (memoryShare(shard) > MAX_MEMORY_SHARE || !this.capture(length)) {
      this.isNotKept('no_room');
      return false;
    }
    const writing = this.#write(shard, accountId, usageId, text).then(() => {
      this.capture(-length);
      this.#underWay.delete(writing);
    });
    this.#underWay.add(writing);
    return true;
  }

  async #write(shard: number, accountId: string, usageId: string, text: string): Promise<void> {
    const { redis, keys } = this.#options;
    const names = [keys.answers[shard] as string, keys.answerTimes[shard] as string, keys.answersOf(shard, accountId)];
    const bounds = [MAX_ANSWERS, MAX_ACCOUNT_BYTES, this.#maxShardBytes].map(String);
    try {
      const reply = await redis.script(keepAnswerScript, names.length, [...names, usageId, accountId, text, ...bounds]);
      if (reply === 1) this.kept++;
      else this.isNotKept('no_room');
    } catch (err) {
      this.isNotKept('failed');
      this.#failures.warn({ err, account_id: accountId }, 'cannot keep the answer to a call with an idempotency key');
    }
  }

  /**
   * Finds the call that has a claim.
   *
   * @returns null if there is none
   * @throws when Redis is away
   */
  async find(accountId: string, claimName: string): Promise<FirstCall | null> {
    const { redis, keys } = this.#options;
    const shard = keys.shardOf(accountId);
    const names = [keys.claims(shard, accountId), keys.answers[shard] as string, keys.open[shard] as string];
    const reply = await redis.script(readAnswerScript, names.length, [...names, claimName]);
    const [now, claim, text] = reply as [number, string, string];
    if (claim === '') return null;
    const [state, usageId = '', , target = '', bodyDigest = '-', chargedAt = '0', amount = ''] = claim.split('\t');
    const isBeingKept = state === 'k' && text === '' && now - Number(chargedAt) < BEING_KEPT_MS;
    if (state === 'o' || isBeingKept) return { isUnderWay: true, target };
    return {
      isUnderWay: false,
      usageId,
      target,
      bodyDigest: bodyDigest === '-' ? null : bodyDigest,
      amountMicros: /^\d+$/.test(amount) ? Number(amount) : null,
      answer: state === 'k' ? decodeAnswer(text) : null,
    };
  }

  /** Waits for the answers that are being written. */
  async drain(): Promise<void> {
    await Promise.all(this.#underWay);
  }
}
