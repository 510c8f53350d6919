// Sends what a case says to a running gateway, and observes the outcome at the caller and at the service.

import type { Random } from '../fuzz/random.ts';
import { authorization, type Key, type Marketplace } from '../integration/marketplace.ts';
import { RawCaller, type RawResponse } from '../integration/raw-caller.ts';
import { until } from '../support/wait.ts';
import { type Allowed, type CallerCase, EVIL_BODY } from './callers/case.ts';
import type { Seen, Witness } from './witness.ts';

/** The path of the service's endpoint: no request may reach a path outside it. */
export const BASE_PATH = '/base';
/** Cases before a new key is used. A case makes up to half a dozen requests, and a key may make 300 a minute. */
const CASES_PER_KEY = 30;

/**
 * How a case is sent. 'at once': its `rest` together with its request. 'after the answer': its `rest` only when the request has
 * been answered, because a gateway that ends a connection on which two requests arrive at once does not show what else it accepts.
 * 'split': all of it in pieces, cut at random positions.
 */
type Manner = 'at once' | 'after the answer' | 'split';

type Observation = {
  /** The status of the answer; 0 if there was none. */
  readonly status: number;
  /** Whether the connection ended, at once or at the next request. */
  readonly ended: boolean;
  /** Whether the next request on the connection got its own answer. */
  readonly inSync: boolean;
  /** Whether the next request on the connection was refused. */
  readonly refusedNext?: boolean;
  /** Whole requests that the service saw under the case's path. */
  readonly reached: readonly Seen[];
  /** How many heads the service saw under that path, whether or not the request was whole. */
  readonly heads: number;
  /** How many heads the service saw under `{evil}`. */
  readonly evil: number;
};

export class HostileCaller {
  readonly #market: Marketplace;
  readonly #witness: Witness;
  readonly #proxyPath: string;
  readonly #keys: Key[];
  #key: Key;
  #used = 0;
  #cases = 0;

  constructor(market: Marketplace, witness: Witness, proxyPath: string, key: Key) {
    this.#market = market;
    this.#witness = witness;
    this.#proxyPath = proxyPath;
    this.#key = key;
    this.#keys = [key];
  }

  /** All keys used so far, which belong to one account. */
  get keys(): readonly Key[] {
    return this.#keys;
  }

  /** @param random  chooses where a case is split */
  async run(one: CallerCase, manner: Manner, random: Random): Promise<Observation> {
    const { isHead, allowed } = one;
    await this.#takeKey();
    const id = `c${this.#cases++}-`;
    const caller = await RawCaller.connect(this.#market.baseUrl);
    try {
      await this.#say(caller, this.#pieces(one, id, manner, random));
      let response = await this.#answer(caller, allowed, isHead);
      if (manner === 'after the answer' && one.rest !== undefined && !caller.gone) {
        await this.#say(caller, [this.#expanded(one.rest, id)]);
        // The gateway was still waiting for the end of the request: this is its answer to that request.
        if (response === 'silence') response = await this.#answer(caller, allowed, isHead);
        else await this.#answer(caller, allowed);
      }
      if (response === 'silence') return this.#observe(id, { status: 0, ended: false, inSync: false });
      if (response === null) return this.#observe(id, { status: 0, ended: true, inSync: false });
      const next = caller.gone ? null : await this.#probe(caller, id);
      const { status } = response;
      return this.#observe(id, {
        status,
        ended: next === null,
        inSync: next?.status === 200,
        refusedNext: isRefusal(next),
      });
    } finally {
      caller.destroy();
    }
  }

  /** A well-meaning call on a connection of its own. */
  async ask(suffix: string): Promise<number> {
    return (await this.#market.request(`${this.#proxyPath}/${suffix}`, { key: this.#key })).status;
  }

  /** @returns null if `allowed` allows the observation, or what is wrong with it */
  fault(allowed: Allowed, seen: Observation): string | null {
    if (seen.evil > 0 && allowed.second !== true) return 'the service saw a request nobody made';
    if (seen.heads > 1) return 'the service saw the request more than once';
    const outcomes = outcomesOf(seen, allowed.surplus === true);
    const isServed = allowed.served !== undefined && outcomes.served && this.#isAsSaid(allowed.served, seen);
    const isAllowed =
      isServed ||
      (outcomes.refused && allowed.refused?.includes(seen.status)) ||
      (outcomes.answered && allowed.answered?.includes(seen.status)) ||
      (outcomes.closed && allowed.closed === true) ||
      (outcomes.cut && allowed.cut === true) ||
      (outcomes.let && allowed.lenient === true) ||
      (outcomes.waits && allowed.waits === true);
    return isAllowed === true ? null : 'not what is allowed';
  }

  async #takeKey(): Promise<void> {
    if (this.#used++ < CASES_PER_KEY) return;
    this.#used = 1;
    this.#key = await this.#market.anotherKey(this.#key);
    this.#keys.push(this.#key);
  }

  #pieces({ wire, rest = '', drip }: CallerCase, id: string, manner: Manner, random: Random): readonly string[] {
    const said = (typeof wire === 'string' ? [wire] : wire).map((piece) => this.#expanded(piece, id));
    if (manner === 'after the answer') return said;
    const whole = said.join('') + this.#expanded(rest, id);
    if (manner === 'split') return splitAnywhere(whole, random);
    return drip === true ? [...whole] : [...said.slice(0, -1), said.at(-1) + this.#expanded(rest, id)];
  }

  #expanded(text: string, id: string): string {
    const evilLength = EVIL_BODY.replace('{evil}', `${this.#proxyPath}/evil-${id}`).length;
    return text
      .replaceAll('{evil-length}', String(evilLength))
      .replaceAll('{path}', `${this.#proxyPath}/${id}`)
      .replaceAll('{evil}', `${this.#proxyPath}/evil-${id}`)
      .replaceAll('{auth}', `Authorization: ${authorization(this.#key)}\r\n`);
  }

  /** @returns null if the connection ended without an answer; 'silence' if the gateway may wait for more, and does */
  async #answer(caller: RawCaller, { waits }: Allowed, isHead = false): Promise<RawResponse | null | 'silence'> {
    if (waits === true) {
      // The gateway has answered later calls, so it has read everything that was sent before them.
      for (let i = 0; i < 2; i++) await this.ask('fence');
      if (!caller.gone && caller.received.length === 0) return 'silence';
    }
    return answerOf(caller, isHead);
  }

  async #say(caller: RawCaller, pieces: readonly string[]): Promise<void> {
    for (const piece of pieces) {
      if (caller.gone) return;
      await new Promise<void>((resolve) => {
        caller.socket.write(Buffer.from(piece, 'latin1'), () => resolve());
      });
      // One turn of the event loop, in which the gateway reads too, because it runs in this process.
      if (pieces.length > 1) await new Promise(setImmediate);
    }
  }

  /** Sends the next request on the same connection. @returns its answer, or null if the connection ended instead */
  async #probe(caller: RawCaller, id: string): Promise<RawResponse | null> {
    const head = [`GET ${this.#proxyPath}/probe-${id} HTTP/1.1`, 'Host: gateway.test'];
    caller.send(`${head.join('\r\n')}\r\nAuthorization: ${authorization(this.#key)}\r\n\r\n`);
    return answerOf(caller);
  }

  async #observe(id: string, at: Omit<Observation, 'reached' | 'heads' | 'evil'>): Promise<Observation> {
    const own = `${BASE_PATH}/${id}`;
    const headsOf = (prefix: string): number =>
      this.#witness.heads.filter((head) => head.slice(head.indexOf(' ') + 1).startsWith(prefix)).length;
    // If the caller got no answer, its request may still be on its way to the service.
    if (at.status === 0) await this.ask('fence');
    if (at.inSync) await until(() => headsOf(`${BASE_PATH}/probe-${id}`) === 1);
    return {
      ...at,
      reached: this.#witness.under(own),
      heads: headsOf(own),
      evil: headsOf(`${BASE_PATH}/evil-${id}`),
    };
  }

  #isAsSaid({ suffix = '', method = 'POST', body }: NonNullable<Allowed['served']>, { reached }: Observation): boolean {
    const [seen] = reached;
    if (seen === undefined || seen.method !== method) return false;
    return seen.url.endsWith(`-${suffix}`) && (body === undefined || seen.body === this.#expand(body, seen.url));
  }

  /** A body contains the paths as they were on the wire. */
  #expand(body: string, url: string): string {
    const id = /\/(c\d+-)/.exec(url)?.[1] ?? '';
    return body.replaceAll('{evil}', `${this.#proxyPath}/evil-${id}`);
  }
}

type Outcomes = Readonly<Record<'refused' | 'answered' | 'closed' | 'served' | 'cut' | 'let' | 'waits', boolean>>;

function outcomesOf({ status, ended, inSync, refusedNext, reached, heads }: Observation, surplus: boolean): Outcomes {
  const untouched = heads === 0;
  return {
    refused: untouched && status >= 400 && ended,
    answered: untouched && status >= 400 && (ended || inSync),
    closed: untouched && status === 0 && ended,
    served: reached.length === 1 && status === 200 && (ended || inSync || (surplus && refusedNext === true)),
    cut: ended && (status === 0 || (status >= 400 && reached.length === 0)),
    let: ended && reached.length === 1,
    waits: status === 0 && !ended && reached.length === 0 && heads <= 1,
  };
}

const isRefusal = (response: RawResponse | null): boolean => response !== null && response.status >= 400;

/** Splits a case into two to six pieces. Most cuts are in the last lines, where bodies, and the bytes after them, begin. */
function splitAnywhere(whole: string, random: Random): string[] {
  const cuts = new Set<number>();
  for (let i = 0; i <= random(5); i++) {
    const far = random(2) === 0 ? whole.length : Math.min(whole.length, 150);
    cuts.add(whole.length - random(far));
  }
  const places = [0, ...[...cuts].sort((a, b) => a - b), whole.length];
  return places.slice(1).map((end, i) => whole.slice(places[i], end));
}

/** @returns null if the connection ends before the answer is whole */
async function answerOf(caller: RawCaller, isHead = false): Promise<RawResponse | null> {
  try {
    return await caller.response(isHead);
  } catch (error) {
    if (caller.gone) return null;
    throw error;
  }
}
