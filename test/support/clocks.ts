/**
 * The parts of time that tests fake. Not `setImmediate`: test files of one worker share their modules, and work that an earlier file left
 * running would wait for an event-loop turn (`src/platform/turns.ts`) that never comes, and block all later tests.
 */
export const CLOCKS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] as const;
