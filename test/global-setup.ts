// Once per test run: a scratch folder, and in it one Postgres with a migrated database. Every test file makes databases of its own there.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { initialisePostgres, startPostgres } from '../scripts/local/postgres.mjs';
import { createScratch, folderOfTests, runDirOf } from '../scripts/local/scratch.mjs';
import { makeMigrated } from './support/migrated.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresAdminUrl: string;
    /** The data folder of a Postgres that was never started, and its password. */
    postgresTemplate: { readonly dir: string; readonly password: string };
    scratchDir: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  // `npm test` made one and clears it; a bare `vitest` has to make its own.
  const given = process.env.TOLLGATE_SCRATCH_DIR;
  const scratch = given === undefined ? createScratch(folderOfTests()) : undefined;
  const dir = given ?? (scratch?.dir as string);
  const dataDir = path.join(dir, 'postgres');
  const password = await initialisePostgres({ dataDir, durable: false });
  // For the servers that tests start: to initialise another folder takes ten times the CPU of a copy.
  const template = { dir: path.join(dir, 'postgres-template'), password };
  execFileSync('cp', ['-a', dataDir, template.dir]);
  const postgres = await startPostgres({ dataDir, password, runDir: runDirOf(dir), durable: false });
  await makeMigrated(postgres.url);
  project.provide('postgresAdminUrl', postgres.url);
  project.provide('postgresTemplate', template);
  project.provide('scratchDir', dir);
  return async () => {
    await postgres.stop();
    await scratch?.release();
  };
}
