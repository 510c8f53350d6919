import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Left, UnheardCall } from '../../../src/proxy/by-use/unheard-call.ts';
import { UnheardCalls } from '../../../src/proxy/by-use/unheard-calls.ts';

/** What happens to a gateway that reads on: an account leaves a call behind, or one of the open calls is complete. */
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ leaves: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 1, arbitrary: fc.record({ ends: fc.nat({ max: 9 }) }) },
);

const REPORTED = 7;
type Open = { readonly account: string; call?: UnheardCall };

/** A gateway, and the calls that it should be reading on, oldest first. */
class Run {
  readonly open: Open[] = [];
  readonly givenUp: Open[] = [];
  readonly calls: UnheardCalls;

  constructor(max: number) {
    this.calls = new UnheardCalls(max);
  }

  leaves(account: string): Open {
    const one: Open = { account };
    this.open.push(one);
    one.call = new UnheardCall(
      {
        account,
        upstream: { handTo() {}, resume() {}, destroy() {} },
        use: { awaitsReport: true, capturedMicros: REPORTED, read() {} },
        maxMs: 60_000,
        isAnswered: false,
        keyed: null,
        onComplete() {},
        settle: (refund: string | null, captured: number | null) => {
          expect([refund, [REPORTED, null]]).toEqual([null, expect.arrayContaining([captured])]);
          this.open.splice(this.open.indexOf(one), 1);
          if (captured === null) this.givenUp.push(one);
        },
      } as unknown as Left,
      this.calls,
    );
    return one;
  }

  countOf(account: string): number {
    return this.open.filter((one) => one.account === account).length;
  }
}

it('beyond the bound, the account with most calls that continue without a caller pays the full hold of its oldest one', () => {
  const property = fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 40 }), (max, steps) => {
    const run = new Run(max);
    let givenUp = 0;
    for (const happens of steps) {
      const before = [...run.open];
      run.givenUp.length = 0;
      if ('ends' in happens) before[happens.ends]?.call?.onEnd([]);
      else before.push(run.leaves(happens.leaves));
      expect(run.givenUp).toHaveLength(Math.max(0, before.length - max));
      givenUp += run.givenUp.length;
      for (const { account } of run.givenUp) {
        const most = Math.max(...before.map((one) => before.filter((other) => other.account === one.account).length));
        expect(run.countOf(account)).toBe(most - 1);
        expect(run.givenUp[0]).toBe(before.find((one) => one.account === account));
      }
      expect(run.calls.size).toBe(run.open.length);
    }
    expect(run.calls.holdsCaptured.get('number')).toBe(givenUp);
  });
  fc.assert(property);
});
