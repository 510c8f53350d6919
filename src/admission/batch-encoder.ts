import { TripEncoder } from '../platform/trip-encoder.ts';
import type { CallTerms } from './call-terms.ts';

/**
 * The commands of one trip, in the form in which batch.lua takes them. One object serves any number of trips, one after the other. An argument costs Redis 0.2 µs
 * (parsed, copied into Lua, freed), so what can be said once a batch is: the letters of all commands are one argument, and
 * the terms of a listing are there once for all its calls that stand together.
 */
export class BatchEncoder {
  readonly #script = new TripEncoder();
  #letters = '';
  #terms: CallTerms | null = null;
  #replies = 0;

  /** Drops what a run that broke off has left. @param instance who is written into the holds */
  begin(instance: string): void {
    this.#script.begin();
    this.#script.arg(instance);
    this.#letters = '';
    this.#terms = null;
    this.#replies = 0;
  }

  /** @param keys @param args  encoded, see `TripEncoder` @param replies numbers in its part of the reply */
  command(letter: string, keys: string, keyCount: number, args: string, argCount: number, replies: number): void {
    this.#letters += letter;
    this.#replies += replies;
    this.#script.keys(keys, keyCount);
    this.#script.args(args, argCount);
  }

  /** What the calls admitted from here on cost. */
  terms(terms: CallTerms): void {
    if (this.#terms === terms) return;
    this.#terms = terms;
    this.#letters += 'P';
    this.#script.args(terms.args, 3);
  }

  /** Numbers that the script has to reply. */
  get replies(): number {
    return this.#replies;
  }

  /** The whole call, to be sent before the next one begins. */
  end(): TripEncoder {
    this.#script.arg(this.#letters);
    return this.#script;
  }
}
