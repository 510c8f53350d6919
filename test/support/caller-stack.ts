import type { RedisStore } from '../../src/platform/redis.ts';

/**
 * A command that times out, or that Redis refuses, fails in a timer or a socket's callback: its stack names ioredis and no
 * test. From now on the errors of this client name the line that gave the command, so that a failure shows it.
 */
export function withCallerStack<T extends RedisStore>(client: T): T {
  const send = client.command.bind(client);
  client.command = (name, args) => {
    const here = callerOf(client.command);
    return send(name, args).catch((error: unknown) => {
      throw calledFrom(error, here);
    });
  };
  return client;
}

/** Vitest lets a stack have 100 frames, and there is one for each command. So many show which line of which test gave it. */
const FRAMES = 20;

function callerOf(called: (...args: never) => unknown): Here {
  const here = {} as Here;
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(here, called);
  Error.stackTraceLimit = limit;
  return here;
}

type Here = { readonly stack?: string };

/** The same error, with the stack of `here`: where what failed was asked for. */
export function calledFrom(error: unknown, here: Here): unknown {
  if (error instanceof Error) {
    const frames = here.stack?.slice(here.stack.indexOf('\n')) ?? '';
    error.stack = `${error.name}: ${error.message}${frames}`;
  }
  return error;
}
