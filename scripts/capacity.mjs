// @ts-check
// How many cores, how much memory and disk, and how many connections a load needs, from what was measured.
//
//   npm run capacity -- --calls-per-second 20000 [--latency-ms 500] [--keep-days 400]

import { parseArgs } from 'node:util';
import { FULL, plan } from './capacity/plan.mjs';

const usage = 'npm run capacity -- --calls-per-second 20000 [--latency-ms 500] [--keep-days 400]';

function main() {
  const { values } = parseArgs({
    options: {
      'calls-per-second': { type: 'string' },
      'latency-ms': { type: 'string', default: '500' },
      'keep-days': { type: 'string', default: '400' },
    },
  });
  const load = {
    callsPerSecond: positive('--calls-per-second', values['calls-per-second'], 10_000_000),
    latencyMs: positive('--latency-ms', values['latency-ms'], 86_400_000),
    keepDays: positive('--keep-days', values['keep-days'], 36_500),
  };
  const { step, isBeyond, lines } = plan(load);
  console.log(`${load.callsPerSecond} calls/s of ${load.latencyMs} ms: ${step} (docs/scaling.md)\n`);
  for (const { part, needs, because, next } of lines)
    console.log(`${part}\n  needs     ${needs}\n  measured  ${because}\n  next      ${next}\n`);
  console.log(
    `Each core is planned to be ${FULL * 100} % full. The costs are of the machines of docs/performance.md, and yours differ.`,
  );
  if (isBeyond)
    console.log('This is more than one writer has ever stored here: divide the accounts among several installations.');
}

/** @param {string} name @param {string | undefined} text @param {number} most */
function positive(name, text, most) {
  const value = Number(text);
  if (text !== undefined && value > 0 && value <= most) return value;
  throw new Error(`${name} must be a number above 0, at most ${most}\n${usage}`);
}

try {
  main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
