// @ts-check
// Every scenario is a file of this folder. `names` has the scenarios of a whole run, in their order.

import { UsageError } from '../options.mjs';

const names = [
  'metered-get',
  'metered-post',
  'rejected-floods',
  'modest-rate',
  'fixed-rate',
  'download',
  'upload',
  'event-streams',
  'stalled-readers',
  'discover',
  'many-keys',
  'usage-pipeline',
  'workers',
  'idle',
];
// Run only if they are asked for by name, because the others take 21 minutes already.
const onRequest = [
  'by-use',
  'budgets',
  'overload',
  'pages',
  'usage-month',
  'page-loads',
  'flush',
  'drop',
  'comparison',
  'drain',
  'clusters',
  'access-log',
  'before',
];
const known = [...names, ...onRequest];

/**
 * @param {string[] | null} only
 * @returns {Promise<import('../run.mjs').Scenario[]>}
 */
export async function findScenarios(only) {
  const unknown = only?.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new UsageError(`there is no scenario '${unknown}'; there are: ${known.join(', ')}`);
  const wanted = only === null ? names : known.filter((name) => only.includes(name));
  return Promise.all(wanted.map(async (name) => ({ name, ...(await import(`./${name}.mjs`)) })));
}
