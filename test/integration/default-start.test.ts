// `node dist/main.js` with its default settings, and with ONE_PROCESS=on.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { childPids } from '../../scripts/local/identity.mjs';
import { buildSources } from '../support/build.ts';
import { until } from '../support/wait.ts';
import { echo, startService, type TestService } from './marketplace.ts';
import { isAlive, WorkerStack } from './worker-stack.ts';

// An empty variable counts as unset.
const AS_IT_IS = { WORKERS: '' };

let build: string;
let stack: WorkerStack;
let service: TestService;

beforeAll(async () => {
  build = buildSources();
  service = await startService(echo);
});
afterAll(() => service.close());

/** Makes a paid call, and waits for its record in Postgres. */
async function expectPaidCall(): Promise<void> {
  const path = await stack.service({ endpoint: service.url, price: 0.01 });
  const key = await stack.buyer(5);
  const response = await fetch(`${stack.baseUrl}${path}/hello`, {
    headers: { Authorization: `Bearer ${key.key_id}:${key.secret}` },
  });
  expect([response.status, response.headers.get('x-acf-amount')]).toEqual([200, '0.01']);
  await stack.settled(key.account_id);
  expect(await stack.records(key)).toHaveLength(1);
}

describe('node dist/main.js', () => {
  beforeAll(async () => {
    stack = await WorkerStack.start(build, AS_IT_IS);
  });
  afterAll(() => stack.stop());

  it('runs a gateway and a writer in separate processes, and one page shows the metrics of both', async () => {
    const { supervisor } = stack;
    const pids = [supervisor.pidOf('writer'), supervisor.pidOf('1')];
    expect(childPids(supervisor.child.pid).sort()).toEqual(pids.sort());
    await expectPaidCall();
    const admitted = await stack.samples('tollgate_calls_admitted_total');
    const stored = await stack.samples('tollgate_writer_stored_calls_total');
    expect([...admitted, ...stored]).toEqual([
      ['1', 1],
      ['writer', 1],
    ]);
    const busy = await stack.samples('tollgate_event_loop_active_seconds_total');
    expect([...busy.keys()].sort()).toEqual(['1', 'supervisor', 'writer']);
  });

  it('restarts a writer that died, while the gateway keeps serving', async () => {
    const { supervisor } = stack;
    const writer = supervisor.pidOf('writer');
    process.kill(writer, 'SIGKILL');
    await until(() => supervisor.pidsOf('writer').length === 2);
    expect(supervisor.pidsOf('1')).toHaveLength(1);
    await expectPaidCall();
  });

  // SIGINT is tested in workers-lifecycle.test.ts.
  it('drains when all its processes get SIGTERM, and leaves no process behind', async () => {
    const { supervisor } = stack;
    const pids = childPids(supervisor.child.pid);
    supervisor.signal('SIGTERM', true);
    expect((await supervisor.child.exited).code).toBe(0);
    expect(pids.filter(isAlive)).toEqual([]);
    expect(supervisor.log.map(({ msg }) => msg).filter((msg) => msg === 'gateway drained')).toHaveLength(1);
  });
});

describe('ONE_PROCESS=on', () => {
  afterAll(() => stack.stop());

  it('runs gateway and writer in the process that was started', async () => {
    stack = await WorkerStack.start(build, { ...AS_IT_IS, ONE_PROCESS: 'on' });
    expect(childPids(stack.supervisor.child.pid)).toEqual([]);
    await expectPaidCall();
  });
});
