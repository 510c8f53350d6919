import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';
import { parseWorkers } from '../../src/config/workers.ts';

it.each([
  ['1', 1],
  ['64', 64],
  ['auto', Math.min(availableParallelism(), 64)],
])('%s means %i workers', (text, workers) => {
  expect(parseWorkers(text)).toBe(workers);
});

it.each(['0', '65', '-1', '1.5', '2x', 'many', ' 2', '1e1', ''])('%j is not a number of workers', (text) => {
  expect(parseWorkers(text)).toBeNull();
});
