import { randomBytes } from 'node:crypto';
import { CallTerms } from '../../src/admission/call-terms.ts';
import {
  type AdmissionListener,
  AdmitCommand,
  type AdmitRequest,
  type AdmitResult,
  type KeyBucket,
  SettleCommand,
  TakeCommand,
  type TakeResult,
} from '../../src/admission/commands.ts';
import { EncodedKeys } from '../../src/admission/encoded-keys.ts';
import { encodeSettlement } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { RedisKeys } from '../../src/platform/redis-keys.ts';
import { hostOf, SHARDS, type Store } from '../support/store.ts';

export const encodedKeys = new EncodedKeys(new RedisKeys(SHARDS));
export const INSTANCE = 'gateway-1';
export const COMPLETED = encodeSettlement({
  outcome: 'completed',
  status: 200,
  latencyUs: 1,
  requestBytes: 2,
  responseBytes: 3,
});
export const REFUNDED = encodeSettlement({
  outcome: 'refunded:upstream_error',
  status: 502,
  latencyUs: 1,
  requestBytes: 2,
  responseBytes: 3,
});

/** One buyer with a key, one service. */
export type Scene = {
  readonly accountId: string;
  readonly keyId: string;
  readonly serviceId: string;
  /** The keys above the key, root first. Absent: none. */
  readonly ancestors?: readonly string[];
};

export const newKeyId = (): string => `acf_${randomBytes(11).toString('hex')}`;

export function newScene(): Scene {
  return { accountId: uuidv7(), keyId: newKeyId(), serviceId: uuidv7() };
}

/** A scene whose key and wallet are loaded. */
export async function openScene(store: Store, balance: number, limit = 300): Promise<Scene> {
  const scene = newScene();
  await store.loadKey(scene.keyId, scene.accountId, limit);
  await store.loadWallet(scene.accountId, balance);
  return scene;
}

export function request(scene: Scene, priceMicros: number, freeCalls = 0, usageId = uuidv7()): AdmitRequest {
  const { serviceId } = scene;
  return requestAt(scene, new CallTerms({ id: serviceId, providerId: uuidv7(), priceMicros, freeCalls }), usageId);
}

export function requestAt({ keyId, accountId, ancestors }: Scene, terms: CallTerms, usageId = uuidv7()): AdmitRequest {
  return {
    usageId,
    buyer: encodedKeys.buyer(keyId, accountId, ancestors),
    terms,
    method: 'GET',
    path: '/x',
    tag: null,
    claim: null,
  };
}

type Prices = { readonly price: number; readonly max: number; readonly ceiling?: number; readonly freeCalls?: number };

/** A call priced by use. */
export function requestByUse(scene: Scene, { price, max, ceiling, freeCalls = 0 }: Prices): AdmitRequest {
  const listing = { id: scene.serviceId, providerId: uuidv7(), priceMicros: price, maxPriceMicros: max, freeCalls };
  const terms = new CallTerms(listing);
  return requestAt(scene, ceiling === undefined ? terms : terms.upTo(ceiling));
}

/** An admission listener that calls a function. */
export const listener = (done: (result: AdmitResult) => void): AdmissionListener => ({ onAdmission: done });

/** Admits calls in one script. */
export async function admitAll(
  store: Store,
  requests: readonly AdmitRequest[],
  instance = INSTANCE,
  host = hostOf(store.keys, instance),
): Promise<AdmitResult[]> {
  const results: AdmitResult[] = [];
  const commands = requests.map(
    (call, i) =>
      new AdmitCommand(
        call,
        listener((result) => {
          results[i] = result;
        }),
      ),
  );
  await store.run(commands, host);
  return results;
}

export async function admit(store: Store, call: AdmitRequest, instance = INSTANCE): Promise<AdmitResult> {
  return (await admitAll(store, [call], instance))[0] as AdmitResult;
}

export async function settle(store: Store, call: AdmitRequest, refund: boolean): Promise<void> {
  const command = new SettleCommand(call.usageId, call.buyer, refund, refund ? REFUNDED : COMPLETED, () => {});
  await store.run([command], hostOf(store.keys, INSTANCE));
}

/** Settles a call with what its service reported. */
export async function capture(store: Store, call: AdmitRequest, reportedMicros: number): Promise<void> {
  const command = new SettleCommand(call.usageId, call.buyer, false, COMPLETED, () => {}, reportedMicros);
  await store.run([command], hostOf(store.keys, INSTANCE));
}

export async function take(
  store: Store,
  scene: Scene,
  bucket?: KeyBucket,
  host = hostOf(store.keys, INSTANCE),
): Promise<TakeResult> {
  let result: TakeResult | undefined;
  const command = new TakeCommand(
    scene.keyId,
    scene.accountId,
    0,
    (given) => (result = given),
    bucket,
    scene.ancestors,
  );
  await store.run([command], host);
  return result as TakeResult;
}
