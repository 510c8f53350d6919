import { expect, it } from 'vitest';
import { SparseWarning } from '../../src/observability/sparse-warning.ts';

it('the first warning is logged, then one per interval with the number of suppressed warnings', async () => {
  const lines: object[] = [];
  const warning = new SparseWarning({ warn: (fields, message) => void lines.push({ ...fields, message }) }, 50);
  for (let i = 0; i < 5; i++) warning.warn({ i }, 'away');
  expect(lines).toEqual([{ i: 0, message: 'away' }]);
  const loggedAt = performance.now();
  while (performance.now() - loggedAt <= 60) await new Promise(setImmediate);
  warning.warn({ i: 5 }, 'away');
  expect(lines.slice(1)).toEqual([{ i: 5, left_out: 4, message: 'away' }]);
});
