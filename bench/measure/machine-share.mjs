// @ts-check
// Measures how much of the machine other programs used during a measurement, so that results of a busy machine say so.

import { cpuSeconds, cpuSecondsOf, machineCpuSeconds } from './proc.mjs';

/**
 * @typedef {object} MachineShares
 * @property {number} foreignShare share of the machine that processes outside this benchmark used
 * @property {number} stolenShare share of the machine that its host gave to other virtual machines
 */

/**
 * @param {import('../stage/stage.mjs').Stage} stage
 * @param {number} processors
 * @returns {{ stop: () => MachineShares }}
 */
export function watchMachine(stage, processors) {
  const read = () => ({
    ...machineCpuSeconds(),
    // Drivers are children of this process. Their time counts once they have ended.
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
