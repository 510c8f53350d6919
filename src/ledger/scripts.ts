import { loadScript } from '../platform/script.ts';

/** The ledger's scripts, read once at start. Each file's header documents its KEYS, ARGV and reply. */
export const lookForHoldsScript = loadScript(import.meta.url, 'look-for-holds');
export const sweepScript = loadScript(import.meta.url, 'sweep');
export const hydrateWalletScript = loadScript(import.meta.url, 'hydrate-wallet');
export const applyCreditScript = loadScript(import.meta.url, 'apply-credit');
export const takeDebitScript = loadScript(import.meta.url, 'take-debit');
export const readWalletScript = loadScript(import.meta.url, 'read-wallet');
export const sumHoldsScript = loadScript(import.meta.url, 'sum-holds');
export const findCallScript = loadScript(import.meta.url, 'find-call');
export const compareWalletsScript = loadScript(import.meta.url, 'compare-wallets');
export const repairWalletScript = loadScript(import.meta.url, 'repair-wallet');
export const dropWalletsScript = loadScript(import.meta.url, 'drop-wallets');
export const loadKeyScript = loadScript(import.meta.url, 'load-key');
export const putKeyScript = loadScript(import.meta.url, 'put-key');
export const seeShardsScript = loadScript(import.meta.url, 'see-shards');
export const trimStreamScript = loadScript(import.meta.url, 'trim-stream');
export const acceptMarkScript = loadScript(import.meta.url, 'accept-mark');
