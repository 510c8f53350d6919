import { readFileSync } from 'node:fs';
import { defineScript, type Script } from '../platform/redis.ts';

const load = (name: string): Script =>
  defineScript(name, readFileSync(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8'));

/** The scripts, read once at start from the files that document their KEYS, ARGV and replies. */
export const batchScript = load('batch');
export const sweepScript = load('sweep');
export const hydrateWalletScript = load('hydrate-wallet');
export const applyCreditScript = load('apply-credit');
export const readWalletScript = load('read-wallet');
