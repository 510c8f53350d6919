import { expect, it } from 'vitest';
import type { Browser } from '../../src/sessions/browser.ts';
import { Holders } from '../../src/sessions/holders.ts';

const browser = (hash: string): Browser => ({ hash }) as Browser;

it('the holder of a browser session is read once, however often the browser asks within a second', async () => {
  let reads = 0;
  const holders = new Holders(async ([shown]) => {
    reads++;
    return shown?.hash === 'a' ? 'key' : null;
  });
  const may = () => true;
  const asked = await Promise.all(Array.from({ length: 50 }, () => holders.of([browser('a')], may)));
  expect([new Set(asked), reads]).toEqual([new Set(['key']), 1]);
  expect(await holders.of([browser('b')], may)).toBeNull();
  expect(await holders.of([browser('a'), browser('b')], may), 'another choice of cookies is another question').toBe(
    'key',
  );
  expect(reads).toBe(3);
});

it('nobody is found, and nothing is read, without a cookie or if Postgres may not be queried', async () => {
  const holders = new Holders(async () => {
    throw new Error('was asked');
  });
  expect(await holders.of([browser('a')], () => false)).toBeNull();
  expect(await holders.of([], () => true)).toBeNull();
});

it('a failure is not cached, and at most a thousand answers are cached', async () => {
  let reads = 0;
  const holders = new Holders(async () => {
    if (reads++ === 0) throw new Error('away');
    return 'key';
  });
  await expect(holders.of([browser('a')], () => true)).rejects.toThrow('away');
  expect(await holders.of([browser('a')], () => true)).toBe('key');
  for (let i = 0; i < 1_000; i++) await holders.of([browser(`${i}`)], () => true);
  const before = reads;
  await holders.of([browser('999')], () => true);
  expect(reads, 'the youngest is kept').toBe(before);
  await holders.of([browser('a')], () => true);
  expect(reads, 'the oldest is not').toBe(before + 1);
});
