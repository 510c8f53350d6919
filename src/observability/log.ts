import { writeSync } from 'node:fs';
import { pino } from 'pino';

export type Log = {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
};

const STDOUT = 1;

/**
 * JSON lines on standard output, as long as it takes them: a terminal that was closed, or a full disk, must not end calls, nor
 * keep them from being drained. Header values and bodies are never logged, and of errors only what `describeError` keeps.
 */
export function createLog(level: string, fields: Readonly<Record<string, string | number>>): Log {
  const { isoTime } = pino.stdTimeFunctions;
  return pino({ level, base: fields, timestamp: isoTime, serializers: { err: describeError } }, standardOutput);
}

/**
 * Not pino's own destination (sonic-boom 4): of a disk that is full it keeps every line for another try, and after a fatal one
 * tries for ever, so that the process that has to end never does.
 */
const standardOutput = {
  write(line: string): void {
    const bytes = Buffer.from(line);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(STDOUT, bytes, at);
    } catch {
      // There is nobody left to tell.
    }
  },
};

/**
 * An error without the properties libraries hang on it: ioredis adds the command with its arguments, which may be the
 * password of `AUTH` or a batch of 13 KB.
 */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  const { code } = error as Error & { code?: unknown };
  return {
    type: error.name,
    message: error.message,
    ...(typeof code === 'string' ? { code } : {}),
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
