import { parseArgs } from 'node:util';
import { createAdmin } from '../accounts/create-admin.js';
import { StartRefused } from '../platform/start-refused.js';
import { onDatabase } from './database-program.js';
const USAGE = `create-admin [--label LABEL]
  Makes an account with an admin key, and prints the key once. Needs DATABASE_URL only.
  --label   label of the account: 1 to 200 characters (default operator)`;
const LABEL = /^\P{Cc}{1,200}$/u;
/**
 * The program `main.js create-admin`. Works while gateways run, and without Redis.
 *
 * Tested by test/integration/operators.test.ts.
 *
 * @throws StartRefused when an argument is wrong, the database is away, or its schema is not this build's
 */
export async function createAdminKey(databaseUrl, migrations, args) {
    const label = readLabel(args);
    return onDatabase(databaseUrl, migrations, 'tollgate-create-admin', async (sql) => {
        const key = await createAdmin(sql, label);
        return [
            `account_id  ${key.account_id}`,
            `key_id      ${key.key_id}`,
            `secret      ${key.secret}`,
            'This is the only copy of the secret. Send both as `Authorization: Bearer {key_id}:{secret}`.',
        ].join('\n');
    });
}
function readLabel(args) {
    let label;
    try {
        ({ label } = parseArgs({ args: [...args], options: { label: { type: 'string', default: 'operator' } } }).values);
    }
    catch (error) {
        throw new StartRefused(`${error.message}\n${USAGE}`);
    }
    if (!LABEL.test(label))
        throw new StartRefused(`--label must be 1 to 200 printable characters\n${USAGE}`);
    return label;
}
//# sourceMappingURL=create-admin.js.map