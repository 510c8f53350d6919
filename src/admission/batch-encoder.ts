import { ScriptCall } from '../platform/trip-encoder.ts';
import type { CallTerms } from './call-terms.ts';

/**
 * One run of batch.lua as its operations write it, for any number of runs one after the other. An argument costs Redis 0.2 µs
 * (parsed, copied into Lua, freed), so what can be said once a batch is: the letters of all operations are one argument, and
 * the terms of a listing are there once for all its calls that stand together.
 */
export class BatchCall {
  readonly #script = new ScriptCall();
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

  /** @param keys @param args  encoded, see `ScriptCall` @param replies numbers in its part of the reply */
  operation(letter: string, keys: string, keyCount: number, args: string, argCount: number, replies: number): void {
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
  end(): ScriptCall {
    this.#script.arg(this.#letters);
    return this.#script;
  }
}
