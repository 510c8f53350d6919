import { expect, it } from 'vitest';
import { FairLine } from '../src/fair-line.ts';

/** Gives one entry after another to whose turn it is, as long as there is one. @returns them in that order */
function serve(line: FairLine<string>, limit: number, mayTake?: (owner: string) => boolean): string[] {
  const served: string[] = [];
  for (;;) {
    const entry = line.next(limit, mayTake);
    if (entry === undefined) return served;
    const owner = entry.slice(0, 1);
    line.served(owner, entry);
    line.took(owner);
    served.push(entry);
  }
}

function lineOf(...entries: string[]): FairLine<string> {
  const line = new FairLine<string>(100, 100);
  for (const entry of entries) line.wait(entry.slice(0, 1), entry);
  return line;
}

it('owners take turns, and the entries of one keep their order', () => {
  const line = lineOf('a1', 'a2', 'a3', 'b1', 'b2', 'c1');
  expect(line.oldest).toBe('a1');
  expect(serve(line, 9)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  expect([line.size, line.oldest]).toEqual([0, undefined]);
});

it('an owner at its limit, or blocked by another rule, is skipped and loses no turn', () => {
  const line = lineOf('a1', 'a2', 'b1', 'c1');
  line.took('a');
  expect(serve(line, 1, (owner) => owner !== 'b')).toEqual(['c1']);
  line.left('a');
  line.wait('c', 'c2');
  line.left('c');
  expect(serve(line, 1)).toEqual(['a1', 'b1', 'c2']);
  expect([line.takenBy('a'), line.size]).toEqual([1, 1]);
});

it('an owner that must go last has its turn after the others', () => {
  const line = lineOf('a1', 'b1');
  line.goesLast('a');
  line.goesLast('nobody');
  expect(serve(line, 1)).toEqual(['b1', 'a1']);
});

it('the line is bounded, and so is the share of one owner', () => {
  const line = new FairLine<string>(3, 2);
  line.wait('a', 'a1');
  line.wait('a', 'a2');
  expect([line.hasRoomFor('a'), line.hasRoomFor('b')]).toEqual([false, true]);
  line.wait('b', 'b1');
  expect(line.hasRoomFor('b')).toBe(false);
  line.remove('a', 'a1');
  expect([line.hasRoomFor('a'), line.hasRoomFor('b')]).toEqual([true, true]);
});

it('an entry can be removed once, but not after it was served, and an owner without entries has no turn', () => {
  const line = lineOf('a1', 'b1');
  expect([line.remove('a', 'a1'), line.remove('a', 'a1'), line.remove('x', 'x1')]).toEqual([true, false, false]);
  expect(serve(line, 9)).toEqual(['b1']);
  expect(line.remove('b', 'b1')).toBe(false);
});

it('nobody can give back more than they have', () => {
  expect(() => lineOf('a1').left('a')).toThrow();
});
