import { createHash, randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { request } from '../../scripts/local/api.mjs';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { readJson, writeJson } from '../../scripts/local/files.mjs';
import { freePort } from '../../scripts/local/ports.mjs';
import {
  findRecorded,
  isRunning,
  type OwnedProcess,
  pollUntil,
  signalProcess,
  spawnOwned,
} from '../../scripts/local/processes.mjs';
import { scratchDir, scratchRunDir } from '../support/stores.ts';

// These tests use a copy of the project in which a stub replaces the gateway, so that only the launcher is tested.
let clone: string;
/** That of the test alone, unless the test takes one with stores that are there already: to make them takes a second. */
let dataDir: string;
let port: number;
let metricsPort: number;
const launchers: Launcher[] = [];

interface Launcher {
  child: OwnedProcess;
  output(): string;
  exitCode: Promise<number | null>;
}

beforeAll(() => {
  clone = path.join(scratchDir(), `clone-${process.pid}`);
  mkdirSync(path.join(clone, 'src'), { recursive: true });
  for (const name of [
    'scripts',
    'examples',
    'migrations',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
  ]) {
    cpSync(path.join(projectDir, name), path.join(clone, name), { recursive: true });
  }
  symlinkSync(path.join(projectDir, 'node_modules'), path.join(clone, 'node_modules'));
  cpSync(path.join(projectDir, 'test/scripts/fixtures/stub-main.ts'), path.join(clone, 'src/main.ts'));
  cpSync(path.join(projectDir, 'src/shared.mjs'), path.join(clone, 'src/shared.mjs'));
  cpSync(path.join(projectDir, 'test/scripts/fixtures/stub-main.ts'), path.join(clone, 'src/seed.ts'));
  // The stub serves no pages.
  writeFileSync(path.join(clone, 'scripts/build-web.mjs'), '');
});

beforeEach(async () => {
  dataDir = path.join(clone, `data-${randomUUID()}`);
  port = await freePort();
  metricsPort = await freePort();
});

afterEach(async () => {
  for (const { child, exitCode } of launchers.splice(0)) {
    signalProcess(child.record, 'SIGTERM');
    await exitCode;
    child.forget();
  }
  for (const name of partNames) expect(findRecorded(path.join(dataDir, 'run'), name)).toBeNull();
});

const partNames = ['gateway', 'demo', 'redis', 'postgres'];
const inData = (name: string): string => path.join(dataDir, name);
const requestLog = (): string => readFileSync(inData('stub.json.log'), 'utf8');

function launch(env: Record<string, string> = {}): Launcher {
  const name = `launcher-${randomUUID()}`;
  const logFile = path.join(clone, `${name}.log`);
  const child = spawnOwned({
    runDir: scratchRunDir(),
    name,
    command: process.execPath,
    args: ['scripts/start.mjs'],
    cwd: clone,
    logFile,
    env: {
      PATH: process.env.PATH,
      DATA_DIR: dataDir,
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      STUB_STATE_FILE: inData('stub.json'),
      ...env,
    },
  });
  const launcher = {
    child,
    output: () => readFileSync(logFile, 'utf8'),
    exitCode: child.exited.then(({ code }) => code),
  };
  launchers.push(launcher);
  return launcher;
}

async function started(env: Record<string, string> = {}): Promise<Launcher> {
  const launcher = launch(env);
  const isUp = () => launcher.output().includes('Ctrl-C') || launcher.child.hasExited();
  if (!(await pollUntil(isUp, { timeoutMs: 40_000 })) || launcher.child.hasExited()) {
    throw new Error(`did not start:\n${launcher.output()}`);
  }
  return launcher;
}

async function stop(launcher: Launcher, signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> {
  signalProcess(launcher.child.record, signal);
  return launcher.exitCode;
}

/** For a test that begins where an earlier start without a demo has ended. */
function useStores(): void {
  dataDir = path.join(clone, 'data-stores');
}

/** For a test that begins where an earlier start with a demo has ended. */
async function useDemo(): Promise<void> {
  dataDir = path.join(clone, 'data-demo');
  if (!existsSync(inData('demo.json'))) await stop(await started());
}

describe('npm start', () => {
  it('serves with a demo, stops with exit code 0, and keeps all data for the next start', {
    timeout: 180_000,
  }, async () => {
    dataDir = path.join(clone, 'data-demo');
    const first = await started();
    const demo = readJson(inData('demo.json'));
    expect(Object.keys(demo)).toEqual(['base_url', 'admin', 'provider', 'buyer', 'services']);
    expect(demo.base_url).toBe(`http://127.0.0.1:${port}`);
    expect(demo.services.length).toBeGreaterThanOrEqual(5);
    for (const name of ['demo.json', 'stack.json', 'stores.json'])
      expect(statSync(inData(name)).mode & 0o777).toBe(0o600);
    const stack = readJson(inData('stack.json'));
    expect(Object.keys(stack.pids).sort()).toEqual(['demo', 'gateway', 'launcher', 'postgres', 'redis']);
    expect(await stop(first)).toBe(0);
    expect(readFileSync(inData('logs/gateway.log'), 'utf8')).toContain('the stub drains: 200 demo service');
    // Listings may point to loopback here, so the gateway must not be reachable from other machines.
    expect(readFileSync(inData('logs/gateway.log'), 'utf8')).toContain('listens on 127.0.0.1 allows 127.0.0.0/8');
    expect(existsSync(inData('stack.json'))).toBe(false);

    const { secretsKey } = readJson(inData('stores.json'));
    expect(secretsKey).toMatch(/^[A-Za-z0-9+/]{43}=$/);

    const second = await started();
    expect(readJson(inData('demo.json'))).toEqual(demo);
    // The same key at each start, or the secrets of listings could not be read any more.
    const digest = createHash('sha256').update(secretsKey).digest('hex');
    expect(readFileSync(inData('logs/gateway.log'), 'utf8').split(`keeps secrets with ${digest}`)).toHaveLength(3);
    const { database_url, redis_url } = readJson(inData('stack.json'));
    expect({ database_url, redis_url }).toEqual({ database_url: stack.database_url, redis_url: stack.redis_url });
    expect(await stop(second, 'SIGTERM')).toBe(0);
    expect(requestLog().match(/POST \/api\/v1\/keys/g)).toHaveLength(3);
  });

  it('recognises and stops processes that a killed launcher left behind', async () => {
    useStores();
    const killed = await started({ DEMO: 'off' });
    const left = ['gateway', 'redis', 'postgres'].map((name) => readJson(inData(`run/${name}.json`)));
    await stop(killed, 'SIGKILL');
    expect(left.map(isRunning)).toEqual([true, true, true]);
    const next = await started({ DEMO: 'off' });
    expect(next.output()).toContain('an earlier start left behind');
    expect(left.map(isRunning)).toEqual([false, false, false]);
    expect(await stop(next)).toBe(0);
  });

  it('refuses a second launcher on the same data while the first continues to serve', async () => {
    useStores();
    await started({ DEMO: 'off' });
    const second = launch({ DEMO: 'off', PORT: String(await freePort()) });
    expect(await second.exitCode).toBe(1);
    expect(second.output()).toContain(`already runs with the data in ${dataDir}`);
    expect((await request('GET', `http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  });

  it('names a busy port before anything is started', async () => {
    const server = createServer().listen(port, '127.0.0.1');
    const launcher = launch();
    expect(await launcher.exitCode).toBe(1);
    expect(launcher.output()).toContain(`Port ${port} is taken by another program`);
    expect(existsSync(inData('postgres'))).toBe(false);
    server.close();
  });

  it.each([
    [{ PORT: 'http' }, "PORT must be a port from 1 to 65535, not 'http'"],
    [{ DEMO: 'yes' }, "DEMO must be 'on' or 'off', not 'yes'"],
  ])('refuses %j', async (env, message) => {
    const launcher = launch(env);
    expect(await launcher.exitCode).toBe(1);
    expect(launcher.output()).toContain(message);
  });

  it('stops everything and fails with the last output when the gateway dies', async () => {
    useStores();
    const launcher = await started({ DEMO: 'off' });
    await request('GET', `http://127.0.0.1:${port}/die`).catch(() => {});
    expect(await launcher.exitCode).toBe(1);
    expect(launcher.output()).toMatch(/ended by itself \(exit code 7\)[\s\S]*the stub serves all/);
  });

  it('leaves nothing running when it is stopped in the middle of its start', async () => {
    const launcher = launch();
    expect(await pollUntil(() => existsSync(inData('run/redis.json')), { timeoutMs: 30_000, intervalMs: 5 })).toBe(
      true,
    );
    expect(await stop(launcher)).toBe(0);
    expect(existsSync(inData('stack.json'))).toBe(false);
  });

  it('finishes an interrupted demo with the keys that already exist', async () => {
    await useDemo();
    const demo = readJson(inData('demo.json'));
    const { admin, provider } = demo;
    writeJson(inData('demo.partial.json'), { admin, provider });
    rmSync(inData('demo.json'));
    await stop(await started());
    const again = readJson(inData('demo.json'));
    expect(again).toMatchObject({ admin, provider, services: demo.services });
    expect(again.buyer).not.toEqual(demo.buyer);
    expect(existsSync(inData('demo.partial.json'))).toBe(false);
  });

  it('changes the demo listings when the demo service gets another port, even if somebody has removed one of them', {
    timeout: 180_000,
  }, async () => {
    await useDemo();
    const demo = readJson(inData('demo.json'));
    const stub = readJson(inData('stub.json'));
    writeJson(inData('stub.json'), { ...stub, services: stub.services.slice(1) });
    const demoPort = readJson(inData('stores.json')).demo.port;
    const squatter = createServer().listen(demoPort, '127.0.0.1');
    const launcher = await started();
    squatter.close();
    const moved = readJson(inData('stores.json')).demo.port;
    expect(moved).not.toBe(demoPort);
    expect(launcher.output()).not.toContain('without its demo');
    expect(readJson(inData('demo.json')).services).toEqual(demo.services);
    const { services } = readJson(inData('stub.json'));
    expect(services).toHaveLength(demo.services.length - 1);
    for (const { endpoint } of services) expect(endpoint).toMatch(`http://127.0.0.1:${moved}/`);
    await stop(launcher);
  });

  it('makes another admin when the key of the first one is lost', async () => {
    await useDemo();
    rmSync(inData('demo.json'));
    const launcher = await started();
    expect(launcher.output()).not.toContain('without its demo');
    expect(existsSync(inData('demo.json'))).toBe(true);
  });
});
