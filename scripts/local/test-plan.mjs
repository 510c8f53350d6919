// @ts-check
// What `npm test` and `npm run test:unit` do, from their arguments.

/**
 * @typedef {object} TestPlan
 * @property {boolean} checks types, lint and import directions: only when nothing was asked for in particular
 * @property {boolean} stores whether the tests need a Redis server program
 * @property {string[]} vitest arguments
 */

/** @param {readonly string[]} args of the command line @returns {TestPlan} */
export function planTests(args) {
  const rest = args.filter((arg) => arg !== '--unit');
  const isUnit = rest.length < args.length;
  return {
    checks: args.length === 0,
    stores: !isUnit,
    vitest: [...(isUnit ? ['--config', 'vitest.unit.config.ts'] : []), ...rest],
  };
}
