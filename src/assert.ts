import { AssertionError } from 'node:assert';

/**
 * What always holds, checked. Node's own `assert` takes its arguments as a list, which costs an array a time; a call passes a
 * dozen of these.
 *
 * @throws AssertionError
 */
export function assert(condition: boolean, message: string = 'an invariant does not hold'): asserts condition {
  if (!condition) throw new AssertionError({ message, stackStartFn: assert });
}
