// The rule of docs/decisions 'The wallet follows Postgres', with all its checks: no history of the scenarios breaks a promise.
// `npm run model` explores histories with one fault more.

import { describe, expect, it } from 'vitest';
import { compileModel } from './compiled.ts';

const { explore, rulesOf, SCENARIOS } = await compileModel();

const DEEP = process.env.MODEL_DEEP !== undefined;
/** Bounds the memory, at about 100 bytes a state with what is being explored. A scenario of `npm test` needs a tenth. */
const MAX_STATES = DEEP ? Number(process.env.MODEL_DEEP) : 1_000_000;

describe('no history of faults breaks a promise', () => {
  for (const scenario of Object.values(SCENARIOS)) {
    const maxFaults = scenario.maxFaults + (DEEP ? 1 : 0);
    it(`${scenario.name}: ${maxFaults} faults`, { timeout: DEEP ? 7_200_000 : 180_000 }, () => {
      const result = explore(rulesOf({ ...scenario, maxFaults }), MAX_STATES);
      const { states, ends, seconds, isComplete, counterexample } = result;
      if (DEEP)
        console.log(
          `${scenario.name}: ${states} states, ${ends} ends, ${seconds.toFixed(0)} s, ${isComplete ? 'all' : 'not all'}`,
        );
      expect(counterexample === null ? '' : [counterexample.promise, ...counterexample.history].join('\n')).toBe('');
      expect(isComplete || DEEP).toBe(true);
      expect(ends).toBeGreaterThan(0);
    });
  }
});
