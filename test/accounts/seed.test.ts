import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { ledger, useLedger } from '../ledger/use-ledger.ts';
import { buildSources } from '../support/build.ts';
import { scratchDir } from '../support/stores.ts';

useLedger();

it('the program `seed` makes keys whose money is already in Redis', async () => {
  const out = path.join(scratchDir(), 'seeded.jsonl');
  const { store, databaseUrl } = ledger;
  const env = {
    ...process.env,
    DATABASE_URL: databaseUrl,
    REDIS_URL: store.server.url,
    REDIS_SHARDS: String(store.keys.shards),
  };
  const args = ['--buyers', '3', '--balance', '2.5', '--out', out];
  await promisify(execFile)(process.execPath, [path.join(buildSources(), 'seed.js'), ...args], { env });
  const lines = readFileSync(out, 'utf8').trim().split('\n');
  expect(lines).toHaveLength(3);
  for (const line of lines) {
    const { account_id: id } = JSON.parse(line) as { account_id: string };
    expect(await ledger.balance(id)).toBe(2_500_000);
    expect(await store.command('hgetall', store.keys.wallet(store.keys.shardOf(id), id))).toMatchObject({
      balance: '2500000',
      credit_seq: '1',
    });
  }
});
