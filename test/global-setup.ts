// Once per test run: a scratch folder, and in it one Postgres with a migrated database. Every test file makes databases of its own there.

import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { startPostgres } from '../scripts/local/postgres.mjs';
import { createScratch, runDirOf } from '../scripts/local/scratch.mjs';
import { makeMigrated } from './support/migrated.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresAdminUrl: string;
    scratchDir: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  // `npm test` made one and clears it; a bare `vitest` has to make its own.
  const given = process.env.TOLLGATE_SCRATCH_DIR;
  const scratch = given === undefined ? createScratch() : undefined;
  const dir = given ?? (scratch?.dir as string);
  const postgres = await startPostgres({
    dataDir: path.join(dir, 'postgres'),
    runDir: runDirOf(dir),
    durable: false,
    database: 'admin',
  });
  await makeMigrated(postgres.url);
  project.provide('postgresAdminUrl', postgres.url);
  project.provide('scratchDir', dir);
  return async () => {
    await postgres.stop();
    await scratch?.release();
  };
}
