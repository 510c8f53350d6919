import { expect, it } from 'vitest';
import { LateCounts } from '../../src/platform/late-counts.ts';

/** Counts things. While `isAway`, what is stored fails, and `meanwhile` is called. */
class Things extends LateCounts<number> {
  readonly stored: Record<string, number>[] = [];
  isAway = false;
  meanwhile = (): void => {};

  count(id: string): void {
    this.add(id, 1);
  }

  protected override merged(earlier: number, later: number): number {
    return earlier + later;
  }

  protected override async store(counts: ReadonlyMap<string, number>): Promise<void> {
    if (this.isAway) {
      this.meanwhile();
      throw new Error('away');
    }
    this.stored.push(Object.fromEntries(counts));
  }
}

const lines: unknown[] = [];
const log = { warn: (...line: unknown[]) => void lines.push(line), info: () => {} };

it('counts that cannot be stored wait, are added to newer counts, and are stored once', async () => {
  const things = new Things('things', log);
  things.count('a');
  things.isAway = true;
  things.meanwhile = () => {
    things.count('a');
    things.count('b');
  };
  await things.stop();
  expect(lines).toEqual([[{ err: new Error('away'), waiting: 2 }, 'things are not counted']]);
  things.isAway = false;
  await things.stop();
  await things.stop();
  expect(things.stored).toEqual([{ a: 2, b: 1 }]);
});

it('at most 10 000 things wait: further ones are not counted, which is logged once, and the waiting ones still are', async () => {
  lines.length = 0;
  const things = new Things('things', log);
  for (let i = 0; i < 10_001; i++) things.count(String(i));
  things.count('0');
  things.count('10000');
  await things.stop();
  const [stored] = things.stored;
  expect([Object.keys(stored ?? {}).length, stored?.['0'], stored?.['10000']]).toEqual([10_000, 2, undefined]);
  things.count('0');
  await things.stop();
  expect(lines).toEqual([[{ dropped: 2 }, 'some things were not counted: too many waited for Postgres']]);
});
