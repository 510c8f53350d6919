import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, createReadStream, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AccessLog } from '../../src/observability/access-log.ts';
import { until } from '../support/wait.ts';

let folder: string;
const errors: string[] = [];
const log = { error: (_: object, message: string) => errors.push(message) };
const fields = { role: 'gateway', worker: 2 };

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'access-log-'));
  errors.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string): string => path.join(folder, name);
const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

/** Ends `count` requests, the number of each in its route. */
function write(accessLog: AccessLog, count: number, from = 0): void {
  for (let i = from; i < from + count; i++) {
    const entry = accessLog.begin();
    Object.assign(entry, { requestId: `id-${i}`, keyId: 'acf_1', route: `GET /${i}`, status: 200 });
    accessLog.end(entry);
  }
}

describe('the access log', () => {
  it('has a line for each request, in the order in which requests ended, and includes the last ones when it stops', async () => {
    const fd = openSync(fileOf('log'), 'a');
    const accessLog = new AccessLog({ fields, log, fd });
    const unanswered = accessLog.begin();
    write(accessLog, 5_000);
    accessLog.end(unanswered);
    // A busy machine may need longer for the last lines than a process that stops waits for them.
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    await accessLog.stop().finally(() => vi.useRealTimers());
    closeSync(fd);
    const lines = linesOf(readFileSync(fileOf('log'), 'utf8'));
    expect(lines.map(({ route }) => route)).toEqual([...Array.from({ length: 5_000 }, (_, i) => `GET /${i}`), '']);
    expect(lines[0]).toEqual({
      level: 30,
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      ...fields,
      request_id: 'id-0',
      key_id: 'acf_1',
      route: 'GET /0',
      status: 200,
      ms: expect.any(Number),
      msg: 'request',
    });
    expect(lines.at(-1)).toMatchObject({ key_id: '', route: '', status: 499 });
  });

  it('writes without being stopped, and stops only once', async () => {
    const fd = openSync(fileOf('log'), 'a');
    const accessLog = new AccessLog({ fields, log, fd });
    write(accessLog, 1);
    await until(() => readFileSync(fileOf('log'), 'utf8').endsWith('\n'));
    await accessLog.stop();
    await accessLog.stop();
    write(accessLog, 1);
    closeSync(fd);
  });

  it('does not end the process when the disk is full', async () => {
    const fd = openSync('/dev/full', 'w');
    const accessLog = new AccessLog({ fields, log, fd });
    write(accessLog, 2_000);
    await accessLog.stop();
    closeSync(fd);
    expect(errors).toEqual([]);
  });
});

describe('an access log whose reader reads nothing', () => {
  it('delays no request: lines beyond the bound are lost, and counted when somebody reads again', async () => {
    const pipe = fileOf('pipe');
    spawnSync('mkfifo', [pipe]);
    // Opened for both, so that neither side waits for the other.
    const fd = openSync(pipe, 'r+');
    const maxWaitingBytes = 131_072;
    const accessLog = new AccessLog({ fields, log, fd, maxWaitingBytes });
    write(accessLog, 10_000);
    let text = '';
    const reader = createReadStream(pipe, 'utf8').on('data', (chunk) => {
      text += chunk;
    });
    let next = 10_000;
    await until(() => {
      write(accessLog, 1, next++);
      return text.includes('"lost":');
    });
    await accessLog.stop();
    closeSync(fd);
    await once(reader, 'end');
    const lines = linesOf(text);
    const lost = lines.filter((line) => 'lost' in line);
    const requests = lines.filter(({ msg }) => msg === 'request');
    expect(lost.reduce((sum, line) => sum + line.lost, 0) + requests.length).toBe(next);
    expect(requests.length).toBeLessThan(10_000);
    expect(lost[0]).toMatchObject({ level: 40, ...fields });
    const numbers = requests.map(({ route }) => Number(route.slice(5)));
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  });
});
