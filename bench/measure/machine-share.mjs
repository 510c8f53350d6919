// @ts-check
// What else the machine did while something was measured. Numbers from a busy machine are worth less, and say so.

import { cpuSeconds, cpuSecondsOf, machineCpuSeconds } from './proc.mjs';

/**
 * @typedef {object} MachineShares
 * @property {number} foreignShare share of the machine that processes used which are not of this benchmark
 * @property {number} stolenShare share that the machine's host took away
 */

/**
 * @param {import('../stage/stage.mjs').Stage} stage
 * @param {number} processors
 * @returns {{ stop: () => MachineShares }}
 */
export function watchMachine(stage, processors) {
  const read = () => ({
    ...machineCpuSeconds(),
    // Drivers are children of this process: their time is known when they have ended.
    own: cpuSecondsOf(stage.watched) + cpuSeconds(process.pid, { withReaped: true }),
    at: performance.now() / 1000,
  });
  const before = read();
  return {
    stop: () => {
      const after = read();
      const capacity = (after.at - before.at) * processors;
      return {
        foreignShare: Math.max(0, after.busy - before.busy - (after.own - before.own)) / capacity,
        stolenShare: (after.stolen - before.stolen) / capacity,
      };
    },
  };
}
