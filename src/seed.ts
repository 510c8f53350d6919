import { randomUUID } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type SeededBuyer, seedBuyers } from './accounts/seed-buyers.ts';
import { ConfigError, loadConfig } from './config/config.ts';
import { LARGEST_RATE_LIMIT } from './config/settings.ts';
import { DEFAULT_RATE_LIMIT } from './keys/keys.ts';
import { Fence } from './ledger/history/fence.ts';
import { Hydrator } from './ledger/wallets/hydrate.ts';
import { createLog } from './observability/log.ts';
import { readMigrations } from './platform/migrate.ts';
import { formatUsd, MAX_AMOUNT_MICROS, parseUsd } from './platform/money.ts';
import { StartRefused } from './platform/start-refused.ts';
import { openStores, type Stores } from './roles/stores.ts';

/**
 * For operators: makes buyer keys with money, for load tests and demonstrations. It writes directly into the stores, thousands of
 * keys a second. `npm run seed` finds the local stack and runs this program; with DATABASE_URL and REDIS_URL set, it uses those.
 * Tested by test/accounts/seed.test.ts; its writes to Postgres by seed-buyers.test.ts there.
 */
const USAGE = `npm run seed -- --buyers N --out FILE [--balance USD] [--rate-limit N]
  --buyers      number of accounts, each with one buyer key: 1 to 1000000
  --out         file to write, one line of JSON per key: {"key_id", "secret", "account_id"}; only you can read it
  --balance     USD credited to each account (default 10)
  --rate-limit  requests per minute of each key: 1 to MAX_RATE_LIMIT (default ${DEFAULT_RATE_LIMIT})`;

/** Buyers made in one step. It bounds the size of a transaction in Postgres and of a burst of commands to Redis. */
const BATCH_BUYERS = 1_000;
const MAX_BUYERS = 1_000_000;
const DEFAULT_BALANCE = '10';

type Options = {
  readonly buyers: number;
  readonly balanceMicros: number;
  readonly rateLimit: number;
  readonly outFile: string;
};

class UsageError extends Error {}

/** @throws UsageError with all faults of the arguments */
function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      buyers: { type: 'string' },
      balance: { type: 'string', default: DEFAULT_BALANCE },
      'rate-limit': { type: 'string', default: String(DEFAULT_RATE_LIMIT) },
      out: { type: 'string' },
    },
  });
  const buyers = parseCount(values.buyers, MAX_BUYERS);
  const balanceMicros = parseUsd(values.balance);
  const rateLimit = parseCount(values['rate-limit'], LARGEST_RATE_LIMIT);
  const faults: string[] = [];
  if (buyers === null) faults.push(`--buyers must be a whole number from 1 to ${MAX_BUYERS}`);
  if (balanceMicros === null) faults.push('--balance must be USD with at most 6 decimals, e.g. 2.5');
  if (rateLimit === null) faults.push(`--rate-limit must be a whole number from 1 to ${LARGEST_RATE_LIMIT}`);
  if (values.out === undefined || values.out === '') faults.push('--out must name a file');
  // The journal gets one cash entry for all credits of a step, and no entry may exceed MAX_AMOUNT_MICROS.
  if ((balanceMicros ?? 0) * BATCH_BUYERS > MAX_AMOUNT_MICROS) {
    faults.push(`--balance must be at most ${formatUsd(MAX_AMOUNT_MICROS / BATCH_BUYERS)}`);
  }
  if (faults.length > 0 || buyers === null || balanceMicros === null || rateLimit === null) {
    throw new UsageError(faults.join('\n'));
  }
  return { buyers, balanceMicros, rateLimit, outFile: resolve(values.out as string) };
}

function parseCount(text: string | undefined, max: number): number | null {
  const count = /^\d{1,7}$/.test(text ?? '') ? Number(text) : 0;
  return count >= 1 && count <= max ? count : null;
}

/** Writes to Postgres, then to Redis, then to the file: a key that is in the file can be used at once. */
async function seed(stores: Stores, hydrator: Hydrator, options: Options, out: FileHandle): Promise<void> {
  const label = `seed ${randomUUID()}`;
  for (let made = 0; made < options.buyers; made += BATCH_BUYERS) {
    const { balanceMicros, rateLimit } = options;
    const buyers = Math.min(BATCH_BUYERS, options.buyers - made);
    const seeded = await seedBuyers(new Fence(stores), {
      buyers,
      balanceMicros,
      rateLimit,
      label,
      firstNumber: made + 1,
    });
    // Otherwise the first call of each account would load its wallet, and slow down the start of a load test.
    await Promise.all(seeded.map(({ accountId }) => hydrator.loadWallet(accountId)));
    await out.write(seeded.map(toLine).join(''));
  }
}

const toLine = ({ keyId, secret, accountId }: SeededBuyer): string =>
  `${JSON.stringify({ key_id: keyId, secret, account_id: accountId })}\n`;

async function main(): Promise<void> {
  const startedAt = performance.now();
  const options = parseOptions(process.argv.slice(2));
  const config = loadConfig(process.env);
  if (options.rateLimit > config.maxRateLimit) {
    throw new UsageError(`--rate-limit must be at most MAX_RATE_LIMIT, which is ${config.maxRateLimit}`);
  }
  const migrations = readMigrations(fileURLToPath(new URL('./migrations', import.meta.url)));
  const log = createLog('error', {});
  const stores = await openStores(config, { name: 'seed', maxConnections: 2, migrations, log });
  const hydrator = new Hydrator({ ...stores, databaseUrl: config.databaseUrl, log });
  try {
    const out = await open(options.outFile, 'w', 0o600);
    try {
      // `open` does not change the mode of a file that exists already.
      await out.chmod(0o600);
      await seed(stores, hydrator, options, out);
    } finally {
      await out.close();
    }
  } finally {
    hydrator.close();
    await stores.close();
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const { buyers, balanceMicros, rateLimit, outFile } = options;
  process.stdout.write(
    `${buyers} buyers with $${formatUsd(balanceMicros)} each, ${rateLimit} requests per minute: ${outFile} (${seconds} s)\n`,
  );
}

/**
 * Faults of the command line: those found here, and those that `parseArgs` finds, such as an unknown option. The message alone says
 * enough.
 */
const isUsageFault = (error: unknown): boolean =>
  error instanceof UsageError ||
  (error instanceof TypeError && 'code' in error && /PARSE_ARGS/.test(String(error.code)));

/** An error that an operator can fix is printed without its stack. */
const isPlainFault = (error: Error): boolean =>
  error instanceof ConfigError || error instanceof StartRefused || 'syscall' in error;

main().catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  if (isUsageFault(error)) process.stderr.write(`${message}\n\n${USAGE}\n`);
  else if (error instanceof Error && !isPlainFault(error)) process.stderr.write(`seed: ${error.stack}\n`);
  else process.stderr.write(`seed: ${message}\n`);
  process.exitCode = isUsageFault(error) ? 2 : 1;
});
