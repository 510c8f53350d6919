// @ts-check
// Loaded into a gateway with ACCESS_LOG=on by NODE_OPTIONS: turns its access log off and on again every second, and writes down what
// the process used in each block. Two gateways side by side differ by more than the log costs: each compiles its code in its own way,
// and the machine changes between two measurements. Within a process, from second to second, most of that is the same.
//
// Off means that requests get no entry, as without the setting.

import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';

/** @typedef {{ isOn: boolean, calls: number, cpuMicros: number, endedAtMs: number }} Block */

const blockMs = 1_000;
// In this time the thread writes the lines of the block before.
const unreadMs = 200;

const file = process.env.BENCH_LOG_SWITCH_FILE;
if (file !== undefined && isMainThread) {
  const module = pathToFileURL(path.resolve('dist', 'bundle', 'access-log.js')).href;
  /** @type {{ AccessLog: typeof import('../../src/observability/access-log.ts').AccessLog }} */
  const { AccessLog } = await import(module);
  const begin = AccessLog.prototype.begin;
  let isOn = true;
  let calls = 0;
  AccessLog.prototype.begin = function () {
    calls += 1;
    return isOn ? begin.call(this) : /** @type {any} */ (undefined);
  };
  // User and system time of all threads, so that of the log too.
  const cpuMicros = () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  };
  let number = 0;
  setInterval(() => {
    const [usedBefore, callsBefore] = before;
    if (number > 0) {
      const block = { isOn, calls: calls - callsBefore, cpuMicros: cpuMicros() - usedBefore, endedAtMs: Date.now() };
      appendFileSync(file, `${JSON.stringify(block)}\n`);
    }
    // on off off on on off off on …: what grows or falls steadily counts for both alike.
    isOn = ((number + 1) >> 1) % 2 === 0;
    number += 1;
    setTimeout(() => {
      before = [cpuMicros(), calls];
    }, unreadMs).unref();
  }, blockMs).unref();
  /** @type {[cpuMicros: number, calls: number]} */
  let before = [0, 0];
}
