import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Idle, IdleList } from '../../src/upstream/idle-list.ts';

class Element implements Idle<Element> {
  idleBefore: Element | null = null;
  idleAfter: Element | null = null;
}

test('the list has the same order as a plain array after the same random additions and removals', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(7)), (steps) => {
      const elements = Array.from({ length: 8 }, () => new Element());
      const list = new IdleList<Element>();
      const model: Element[] = [];
      for (const step of steps) {
        const element = elements[step] as Element;
        const at = model.indexOf(element);
        if (at < 0) {
          model.push(element);
          list.add(element);
        } else {
          model.splice(at, 1);
          list.remove(element);
        }
        const listed: Element[] = [];
        for (let next = list.oldest; next !== null; next = next.idleAfter) listed.push(next);
        expect(listed).toEqual(model);
        expect(list.size).toBe(model.length);
      }
    }),
  );
});
