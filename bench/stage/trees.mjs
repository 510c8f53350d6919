// @ts-check
// Keys below those that were seeded, each with a budget that no load spends.

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import postgres from 'postgres';
import { projectDir } from '../../scripts/local/dependencies.mjs';

/** @typedef {import('./keys.mjs').BenchKey} BenchKey */

const rowsPerStatement = 5_000;

/**
 * @param {string} databaseUrl
 * @param {readonly BenchKey[]} roots
 * @param {{ levels: number, rateLimit: number, balanceUsd: number }} tree  `levels`: how many keys hang one below the other, each with a budget
 * @returns {Promise<BenchKey[]>} the lowest key of each root
 */
export async function plantTrees(databaseUrl, roots, { levels, rateLimit, balanceUsd }) {
  // The gateway refuses a secret without the right checksum.
  const credentials = pathToFileURL(path.join(projectDir, 'dist', 'keys', 'credentials.js')).href;
  const { hashSecret, newKeyId, newSecret } = await import(credentials);
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    let lowest = roots.map((key) => ({ key, above: /** @type {string[]} */ ([]) }));
    for (let level = 0; level < levels; level += 1) {
      lowest = lowest.map(({ key, above }) => ({
        key: { key_id: newKeyId(), secret: newSecret(), account_id: key.account_id },
        above: [...above, key.key_id],
      }));
      for (let from = 0; from < lowest.length; from += rowsPerStatement) {
        const rows = lowest.slice(from, from + rowsPerStatement).map(({ key, above }) => ({
          key_id: key.key_id,
          account_id: key.account_id,
          role: 'buyer',
          secret_hash: hashSecret(key.secret),
          rate_limit: rateLimit,
          ancestors: above,
          budget_amount: balanceUsd * 1_000_000,
          budget_period: 'month',
        }));
        await sql`INSERT INTO api_keys ${sql(rows)}`;
      }
    }
    return lowest.map(({ key }) => key);
  } finally {
    await sql.end();
  }
}
