import { AssertionError } from 'node:assert';

/**
 * Checks an invariant. It replaces Node's `assert`, whose rest parameters make an array each time: a call runs through a dozen
 * asserts.
 *
 * @throws AssertionError
 */
export function assert(condition: boolean, message: string = 'an invariant does not hold'): asserts condition {
  if (!condition) throw new AssertionError({ message, stackStartFn: assert });
}
