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

/** How long a line waits for a reader that is behind; beyond it, it is lost, and so are the next ones until there is room. */
const PATIENCE_MS = 1_000;
const NAP_MS = 5;

/**
 * Not pino's own destination (sonic-boom 4): of a disk that is full it keeps every line for another try, and after a fatal one
 * tries for ever, so that the process that has to end never does.
 *
 * A pipe is ours alone only in part: whatever else writes to it, a runner that started us for one, may have made it non-blocking
 * for all. Then one that is full says EAGAIN, and is waited for as a blocking one would be.
 */
class StandardOutput {
  #isPatient = true;
  /** The last line was cut: what comes next must not be glued to it. */
  #isTorn = false;

  write(line: string): void {
    const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
    let at = 0;
    try {
      while (at < bytes.length) at += this.#writeSome(bytes, at);
      this.#isPatient = true;
      this.#isTorn = false;
    } catch {
      // There is nobody left to tell.
      if (at > 0) this.#isTorn = true;
    }
  }

  #writeSome(bytes: Buffer, at: number): number {
    for (let waitedMs = 0; ; waitedMs += NAP_MS) {
      try {
        return writeSync(STDOUT, bytes, at);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || !this.#isPatient) throw error;
        if (waitedMs >= PATIENCE_MS) {
          this.#isPatient = false;
          throw error;
        }
        Atomics.wait(NEVER, 0, 0, NAP_MS);
      }
    }
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4));
const standardOutput = new StandardOutput();

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
