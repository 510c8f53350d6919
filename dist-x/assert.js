import { AssertionError } from 'node:assert';
/**
 * Checks an invariant. It replaces Node's `assert`, which has rest parameters and so makes an array each time: a call runs through
 * a dozen asserts.
 *
 * @throws AssertionError
 */
export function assert(condition, message = 'an invariant does not hold') {
    if (!condition)
        throw new AssertionError({ message, stackStartFn: assert });
}
//# sourceMappingURL=assert.js.map