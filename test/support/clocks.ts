/**
 * What tests fake of time. Not `setImmediate`: test files of one worker share their modules, and what an earlier file left running would
 * wait for a turn of the event loop (`src/platform/turns.ts`) that never comes, and with it all later tests.
 */
export const CLOCKS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] as const;
