import { expect, it } from 'vitest';
import { StateRestorer } from '../../src/keys/state-restorer.ts';
import { until } from '../support/wait.ts';

it('the restorer publishes a bounded number of keys at once, and repeats a key only after a pause, even if it failed', async () => {
  const published: string[] = [];
  const lines: string[] = [];
  let fail = (): void => {};
  const restorer = new StateRestorer({
    publish: (keyId) => {
      published.push(keyId);
      return new Promise((_, reject) => {
        fail = () => reject(new Error('postgres is away'));
      });
    },
    log: { warn: (_, line) => void lines.push(line) },
  });
  for (let i = 0; i < 50; i++) restorer.restore('a');
  expect(published).toEqual(['a']);
  fail();
  await until(() => lines.length === 1);
  expect(lines).toEqual(['cannot publish the state of a key']);
  restorer.restore('a');
  expect(published).toEqual(['a']);
  await until(() => {
    restorer.restore('a');
    return published.length === 2;
  });
  for (let i = 0; i < 500; i++) restorer.restore(`key ${i}`);
  expect(published).toHaveLength(101);
});
