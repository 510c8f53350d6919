import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unitTestFiles } from '../support/unit-files.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'tollgate-unit-files-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (file: string, lines: string[]): void => {
  mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
  writeFileSync(path.join(root, file), lines.join('\n'));
};
const unitTests = (): string[] => unitTestFiles(root);

describe('a unit test', () => {
  it('is a test file that imports nothing that starts a server or a process', () => {
    write('test/proxy/gate.test.ts', ["import { it } from 'vitest';", "import { Gate } from '../../src/gate.ts';"]);
    write('test/proxy/helper.ts', []);
    write('test/net.test.ts', ["import { isIP } from 'node:net';"]);
    expect(unitTests()).toEqual(['test/net.test.ts', 'test/proxy/gate.test.ts']);
  });

  it.each([
    "import { createServer } from 'node:http';",
    "import {\n  createServer,\n  type Server,\n} from 'node:net';",
    "import { spawn } from 'node:child_process';",
    "import { startTestRedis } from './support/stores.ts';",
  ])('is not one with %s', (line) => {
    write('test/some.test.ts', [line]);
    expect(unitTests()).toEqual([]);
  });

  it('is not one whose helper, directly or through another helper, starts something', () => {
    write('test/some.test.ts', ["import { open } from './one.ts';"]);
    write('test/one.ts', ["export * from './two.ts';", "import './some.test.ts';"]);
    write('test/two.ts', ["import { createServer } from 'node:net';"]);
    expect(unitTests()).toEqual([]);
  });

  it('may import types of modules that start something, and modules of src, which start nothing by themselves', () => {
    write('test/some.test.ts', [
      "import type { Server } from 'node:net';",
      "import { type ChildProcess, spawnSync } from 'node:child_process';",
      "import type { Redis } from './helper.ts';",
      "import { connectAll } from '../src/connector.ts';",
    ]);
    write('test/helper.ts', ["import { createServer } from 'node:net';"]);
    write('src/connector.ts', ["import { connect } from 'node:net';"]);
    expect(unitTests()).toEqual(['test/some.test.ts']);
  });
});
