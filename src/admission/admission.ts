import { type Damage, DamageLog } from '../ledger/damage-log.ts';
import { SparseWarning } from '../observability/sparse-warning.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import type { TripConnection } from '../platform/replicated-connection.ts';
import type { Buyer, KeyInTree } from './buyer.ts';
import type { EndedClaim } from './claims.ts';
import {
  type AdmissionListener,
  AdmitCommand,
  type AdmitRequest,
  CancelCommand,
  type Command,
  type CommandHost,
  type KeyBucket,
  SettleCommand,
  TakeCommand,
  type TakeResult,
} from './commands.ts';
import { EncodedKeys } from './encoded-keys.ts';
import type { HoldOwner } from './hold-owners.ts';
import { RefusedSettlements } from './refused-settlements.ts';
import { SettlementRetries } from './settlement-retries.ts';
import { MAX_BATCH, MAX_PENDING, Trips } from './trips.ts';

/**
 * Maximum number of settlements and cancellations that Redis has not confirmed; beyond it no new call is admitted until Redis has
 * caught up. The value is that of MAX_PENDING: as many commands may wait for a trip. Settlements that Redis has refused because
 * their shard is damaged do not count: they wait for an operator, and must not stop the calls of other shards.
 */
const MAX_UNSETTLED = MAX_PENDING;
/** A reply code that this gateway does not know is logged at most once an hour: any call may meet it. */
const UNKNOWN_CODE_EVERY_MS = 3_600_000;

/** Loads a key's state or a wallet from Postgres into Redis when the script says 'not loaded'. Rejects when Postgres is away. */
export interface StateLoader {
  loadKey(keyId: string, accountId: string): Promise<void>;
  loadWallet(accountId: string): Promise<void>;
}

type AdmissionOptions = {
  /** Runs batch.lua. */
  readonly batches: Pick<TripConnection, 'ready' | 'onReady' | 'send'>;
  readonly keys: RedisKeys;
  /** The shards whose accounts are admitted here. Default: all. */
  readonly shards?: readonly number[];
  /** Identifies this gateway process; new at each start. */
  readonly instance: string;
  readonly loader: StateLoader;
  /** The settlement of every call that is cancelled because its admission had no reply (encoded by ledger/usage-event.ts). */
  readonly cancelSettlement: string;
  readonly log: { warn(fields: object, message: string): void };
};

/**
 * Makes commands from requests (admissions, settlements, tokens to take), which batch.lua carries out in batches, one batch a trip
 * (`Trips`), and reacts to each command's reply or loss. Admissions, tokens and refunds are sent at the end of their event-loop
 * turn. Settlements of charged calls are sent with the next of these, or after 20 ms at most.
 *
 *   admit() take() settle()           flush (end of the turn)              reply
 *        │                                    │                              │
 *        └──► pending: commands ─────► one EVALSHA ─────────► command.onReply(reply, at)
 *                  ▲                          │ lost
 *                  └── settlements, again ◄───┴──► admissions: 'unavailable', and cancelled by id
 *
 * Tested by test/admission/admission.test.ts, batch.test.ts, damage.test.ts and model.test.ts.
 */
export class Admission implements CommandHost {
  readonly keys: RedisKeys;
  readonly encodedKeys: EncodedKeys;
  readonly #trips: Trips;
  readonly #loader: StateLoader;
  readonly #cancelSettlement: string;
  /** Settlements and cancellations that have no reply yet; drain() waits for them. */
  #unsettled = 0;
  /** Number of commands whose key or wallet is being loaded from Postgres. */
  #loading = 0;
  #settledElsewhere = 0;
  readonly #loadFailures: SparseWarning;
  readonly #unknownCodes: SparseWarning;
  readonly #retries: SettlementRetries;
  readonly #refused: RefusedSettlements;
  readonly #damage: DamageLog;
  #whenDrained: (() => void)[] = [];

  constructor(options: AdmissionOptions) {
    const { batches, keys, instance, log } = options;
    this.keys = keys;
    this.encodedKeys = new EncodedKeys(keys);
    this.#trips = new Trips({
      batches,
      instance,
      log,
      host: this,
      shards: options.shards ?? Array.from(keys.lease.keys()),
      onCallEnded: () => this.#unsettled--,
      // The pause before settlements are sent again grew up to a second while Redis was away.
      onBack: () => this.#retries.hurry(),
      onTripEnd: () => this.#checkDrained(),
    });
    this.#loader = options.loader;
    this.#cancelSettlement = options.cancelSettlement;
    this.#loadFailures = new SparseWarning(log);
    this.#unknownCodes = new SparseWarning(log, UNKNOWN_CODE_EVERY_MS);
    const port = { connected: () => batches.ready, send: (command: Command) => this.#trips.add(command) };
    this.#retries = new SettlementRetries({ ...port, suspect: () => this.#trips.suspect, probe: MAX_BATCH });
    this.#refused = new RefusedSettlements(port);
    this.#damage = new DamageLog(log);
  }

  /** Starts to renew the leases, even if there are no calls with which to renew them. */
  start(): void {
    this.#trips.start();
  }

  /** Whether Redis carries out this gateway's commands. */
  get answering(): boolean {
    return this.#trips.answering;
  }

  /** Prepares what the calls of this key need. Computed once per key: proxy/stages/checked-call.ts keeps the result with the key. */
  buyer(keyId: string, accountId: string, ancestors: readonly string[]): Buyer {
    return this.encodedKeys.buyer(keyId, accountId, ancestors);
  }

  /**
   * Decides a call: checks the key, takes a token, takes the price or a free slot, and opens the hold. Money is taken only if the
   * call is admitted. A usage id is charged at most once, however often it is sent.
   */
  admit(request: AdmitRequest, listener: AdmissionListener): void {
    if (!this.#available() || (this.#refused.commands > 0 && this.#isRefused(request.buyer))) {
      listener.onAdmission({ outcome: 'unavailable' });
    } else this.#trips.add(new AdmitCommand(request, listener));
  }

  /** Takes one token from a bucket of a key, for a request that is not a call. The buckets of the keys above it are not touched. */
  takeForKey(
    { keyId, accountId, ancestors }: KeyInTree,
    done: (result: TakeResult) => void,
    bucket: KeyBucket = 'own',
  ): void {
    if (!this.#available()) done({ outcome: 'unavailable' });
    else this.#trips.add(new TakeCommand(keyId, accountId, 0, done, bucket, ancestors));
  }

  /** Takes one token from the bucket of an address. */
  takeForAddress(address: string, limitPerMinute: number, done: (result: TakeResult) => void): void {
    if (!this.#available()) done({ outcome: 'unavailable' });
    else this.#trips.add(new TakeCommand(null, address, limitPerMinute, done));
  }

  /**
   * Settles an admitted call: ends its hold, appends one usage event, and gives the money back when `refund` is true. The
   * settlement is sent again until Redis has confirmed it.
   *
   * @param owner the owner of the hold, as the result of `admit` named it
   * @param capturedMicros what a call priced by use is charged; what its hold took beyond that is given back, and it is never charged
   *   more than its hold took. Null: the whole hold is charged. Null with `refund`
   * @param claim  of its idempotency key; null if it has none
   */
  settle(
    usageId: string,
    buyer: Buyer,
    refund: boolean,
    settlement: string,
    owner: HoldOwner,
    capturedMicros: number | null = null,
    claim: EndedClaim | null = null,
  ): void {
    const command = new SettleCommand(usageId, buyer, refund, settlement, owner.ended, capturedMicros, claim);
    this.#unsettled++;
    this.#trips.addSettlement(command);
  }

  /** Number of settlements and cancellations that Redis has not confirmed yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /**
   * Resolves with 0 once every settlement is confirmed, or after `timeoutMs` with the number of unconfirmed settlements. Waits
   * for admissions under way, too: a call that is admitted after its caller was cut off still has to be settled.
   */
  async drain(timeoutMs: number): Promise<number> {
    if (!this.#isIdle()) {
      this.#trips.schedule();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#whenDrained.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    this.#trips.stop();
    this.#retries.stop();
    this.#refused.stop();
    return this.#unsettled;
  }

  reloadAndRetry(command: TakeCommand | AdmitCommand, what: 'key' | 'wallet'): void {
    const isCall = command instanceof AdmitCommand;
    const { keyId, accountId } = isCall ? command.request.buyer : { keyId: command.keyId, accountId: command.subject };
    const loads: Promise<void>[] = [];
    if (what === 'key') loads.push(this.#loader.loadKey(keyId as string, accountId));
    // Redis reports only the first thing that it lacks. If a call's key is missing, most likely its wallet is, too: both are loaded
    // at once.
    if (isCall || what === 'wallet') loads.push(this.#loader.loadWallet(accountId));
    const loaded = Promise.all(loads);
    this.#loading++;
    loaded.then(
      () => {
        this.#loading--;
        this.#trips.add(command);
      },
      (error: unknown) => {
        this.#loading--;
        this.#loadFailures.warn({ err: error, account_id: accountId }, `cannot load the ${what} into redis`);
        command.done({ outcome: 'unavailable' });
        this.#checkDrained();
      },
    );
  }

  cancel(command: AdmitCommand): void {
    const { usageId, buyer, claim } = command.request;
    const { ended } = this.admitted();
    this.#unsettled++;
    this.retrySettlement(new CancelCommand(usageId, buyer.accountId, this.#cancelSettlement, ended, claim));
  }

  admitted(): HoldOwner {
    const owner = this.#trips.ownerOfTrip;
    owner.openCalls++;
    return owner;
  }

  retrySettlement(command: SettleCommand | CancelCommand): void {
    this.#retries.add(command);
  }

  retryRefused(command: SettleCommand | CancelCommand, accountId: string): void {
    this.#refused.add(command, this.keys.shardOf(accountId), !command.wasRefused);
  }

  mended(accountId: string): void {
    const shard = this.keys.shardOf(accountId);
    this.#refused.accepted(shard);
    this.#damage.shardWorks(shard);
  }

  foundDamage(what: Damage, accountId: string, id: string): void {
    this.#damage.found(what, accountId, id, this.keys.shardOf(accountId));
  }

  foundUnknownCode(code: number): void {
    this.#unknownCodes.warn(
      { code },
      'batch.lua returned a code that this gateway does not know: the command is refused',
    );
  }

  /** Number of commands that met damaged data, for each kind of data (wallet, hold, shard). */
  get damage(): ReadonlyMap<Damage, number> {
    return this.#damage.counts;
  }

  settledElsewhere(): void {
    this.#settledElsewhere++;
  }

  /** Number of settlements that found no hold: the sweep had ended the call, or Redis lost the hold. They charged nothing. */
  get settlementsWithoutHold(): number {
    return this.#settledElsewhere;
  }

  #isIdle(): boolean {
    return this.#unsettled === 0 && this.#loading === 0 && this.#trips.isIdle;
  }

  #checkDrained(): void {
    if (this.#whenDrained.length === 0 || !this.#isIdle()) return;
    for (const resolve of this.#whenDrained.splice(0)) resolve();
  }

  #available(): boolean {
    return this.#unsettled - this.#refused.commands < MAX_UNSETTLED && this.#trips.accepting;
  }

  /** A shard that refuses settlements must not admit calls: they could not be settled either. */
  #isRefused({ accountId }: Buyer): boolean {
    return this.#refused.isRefusing(this.keys.shardOf(accountId));
  }
}
