import { parseArgs } from 'node:util';
import { createAdmin } from '../accounts/create-admin.ts';
import { checkSchema, type Migration } from '../platform/migrate.ts';
import { isPostgresUnavailable, openPostgres, sqlState } from '../platform/postgres.ts';

const USAGE = `create-admin [--label LABEL]
  Makes an account with an admin key, and prints the key once. Needs DATABASE_URL only.
  --label   label of the account: 1 to 200 characters (default operator)`;
const LABEL = /^\P{Cc}{1,200}$/u;

/** What an operator can mend: printed without a stack. */
export class CreateAdminError extends Error {}

/**
 * The program `main.js create-admin`. Works while gateways run, and without Redis.
 *
 * Tested by test/integration/operators.test.ts.
 *
 * @throws CreateAdminError when an argument is wrong, the database is away, or its schema is not this build's
 */
export async function createAdminKey(
  databaseUrl: string | undefined,
  migrations: readonly Migration[],
  args: readonly string[],
): Promise<string> {
  const label = readLabel(args);
  if (!/^postgres(ql)?:\/\//.test(databaseUrl ?? '') || !URL.canParse(databaseUrl ?? '')) {
    throw new CreateAdminError(
      'DATABASE_URL must be the URL of Postgres, such as postgres://user:password@host/database',
    );
  }
  const sql = openPostgres({ url: databaseUrl as string, maxConnections: 1, applicationName: 'tollgate-create-admin' });
  try {
    const fault = await checkSchema(sql, migrations);
    if (fault !== null) throw new CreateAdminError(fault);
    const key = await createAdmin(sql, label);
    return [
      `account_id  ${key.accountId}`,
      `key_id      ${key.keyId}`,
      `secret      ${key.secret}`,
      'This is the only copy of the secret. Send both as `Authorization: Bearer {key_id}:{secret}`.',
    ].join('\n');
  } catch (error) {
    if (isPostgresUnavailable(error) || isRefusal(error))
      throw new CreateAdminError(`Postgres: ${(error as Error).message}`);
    throw error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Whether Postgres does not let these credentials in (class 28), or has no such database (3D). */
const isRefusal = (error: unknown): boolean => /^(28|3D)/.test(sqlState(error) ?? '');

function readLabel(args: readonly string[]): string {
  let label: string;
  try {
    ({ label } = parseArgs({ args: [...args], options: { label: { type: 'string', default: 'operator' } } }).values);
  } catch (error) {
    throw new CreateAdminError(`${(error as Error).message}\n${USAGE}`);
  }
  if (!LABEL.test(label)) throw new CreateAdminError(`--label must be 1 to 200 printable characters\n${USAGE}`);
  return label;
}
