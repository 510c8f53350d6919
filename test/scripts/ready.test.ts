import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { request, tryGet } from '../../scripts/local/api.mjs';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { readJson, writeJson } from '../../scripts/local/files.mjs';
import { freePort } from '../../scripts/local/ports.mjs';
import { type OwnedProcess, signalProcess, spawnOwned } from '../../scripts/local/processes.mjs';
import { buildSources, builtWeb } from '../support/build.ts';
import { scratchDir, scratchRunDir } from '../support/stores.ts';
import { until } from '../support/wait.ts';

// These tests run the real `npm start`, with gateway and stores. They run it in a copy of the project, so that it has a build and
// data of its own.
let clone: string;
/** One for all starts: to make the stores takes longer than anything else here. The first test leaves it without a demo. */
let dataDir: string;
let port: number;
let launcher: OwnedProcess | null = null;
let logFile: string;

beforeAll(() => {
  clone = path.join(scratchDir(), `ready-${process.pid}`);
  mkdirSync(clone);
  for (const name of [
    'src',
    'scripts',
    'examples',
    'migrations',
    'web',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
  ]) {
    cpSync(path.join(projectDir, name), path.join(clone, name), { recursive: true });
  }
  // It gets the build of this test run in place of a third one: start.test.ts shows that `npm start` runs all of `npm run build`.
  const manifest = readJson(path.join(projectDir, 'package.json'));
  const steps = [`cp -R '${buildSources()}' dist`, 'node scripts/copy-assets.mjs', `cp -R '${builtWeb()}' dist/web`];
  manifest.scripts.build = steps.join(' && ');
  writeJson(path.join(clone, 'package.json'), manifest);
  symlinkSync(path.join(projectDir, 'node_modules'), path.join(clone, 'node_modules'));
  dataDir = path.join(clone, 'data');
});
beforeEach(async () => {
  port = await freePort();
});
afterEach(async () => {
  await stop();
});

async function launch(env: Record<string, string>): Promise<void> {
  const name = `launcher-${randomUUID()}`;
  logFile = path.join(clone, `${name}.log`);
  const ports = { PORT: String(port), METRICS_PORT: String(await freePort()) };
  launcher = spawnOwned({
    runDir: scratchRunDir(),
    name,
    command: process.execPath,
    args: ['scripts/start.mjs'],
    cwd: clone,
    logFile,
    env: { PATH: process.env.PATH, DATA_DIR: dataDir, DRAIN_SECONDS: '1', ...ports, ...env },
  });
}

async function stop(): Promise<number | null> {
  if (launcher === null) return null;
  signalProcess(launcher.record, 'SIGTERM');
  const { code } = await launcher.exited;
  launcher.forget();
  launcher = null;
  return code;
}

/** Asks /readyz again and again, as a script that waits does. @returns the answers before the first 200 */
async function firstReady(): Promise<Set<string>> {
  const before = new Set<string>();
  await until(async () => {
    if (launcher?.hasExited()) throw new Error(readFileSync(logFile, 'utf8'));
    const answer = await tryGet(`http://127.0.0.1:${port}/readyz`);
    if (answer !== null && answer.status !== 200) before.add(`${answer.status} ${answer.body.status}`);
    return answer?.status === 200;
    // The first start builds the project, too.
  }, 120_000);
  return before;
}

/** Calls each demo service that answers at once, as a script may do as soon as the stack is ready. */
async function callDemo(): Promise<number[]> {
  const demo = readJson(path.join(dataDir, 'demo.json'));
  const callable = demo.services.filter(({ name }: { name: string }) =>
    ['Echo', 'Echo Plus', 'Text Statistics'].includes(name),
  );
  const answers = await Promise.all(
    callable.map((service: { try_path: string }) =>
      request('GET', `${demo.base_url}${service.try_path}`, { key: demo.buyer }),
    ),
  );
  return answers.map(({ status }) => status);
}

it('/readyz also becomes 200 when there is no demo, and when the demo cannot be made', {
  timeout: 180_000,
}, async () => {
  await launch({ DEMO: 'off' });
  await firstReady();
  expect(existsSync(path.join(dataDir, 'stack.json'))).toBe(true);
  expect(await stop()).toBe(0);

  // With this setting listings may not point to loopback, so the demo's listings are refused.
  await launch({ UPSTREAM_ALLOW_CIDRS: '10.0.0.0/8' });
  await firstReady();
  expect(readFileSync(logFile, 'utf8')).toContain('but without its demo');
  expect(await stop()).toBe(0);
});

it('/readyz is 200 only once the printed commands work in both workers, even if the demo service gets another port', {
  timeout: 180_000,
}, async () => {
  await launch({ WORKERS: '2' });
  expect(await firstReady()).toContain('503 starting');
  expect(existsSync(path.join(dataDir, 'demo.json'))).toBe(true);
  expect(await callDemo()).toEqual([200, 200, 200]);
  expect(readFileSync(logFile, 'utf8')).toContain(`Tollgate serves http://127.0.0.1:${port}`);
  expect(await stop()).toBe(0);

  const squatter = createServer().listen(readJson(path.join(dataDir, 'stores.json')).demo.port, '127.0.0.1');
  await launch({ WORKERS: '2' });
  expect(await firstReady()).toContain('503 starting');
  expect(await callDemo()).toEqual([200, 200, 200]);
  squatter.close();
  expect(await stop()).toBe(0);
});
