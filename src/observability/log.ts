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
 * A log of JSON lines on standard output. A line that cannot be written there is lost: a closed terminal or a full disk must not
 * end calls or block the drain. Header values and bodies are never logged. Of an error, only the fields that `describeError`
 * keeps are logged.
 */
export function createLog(level: string, fields: Readonly<Record<string, string | number>>): Log {
  const { isoTime } = pino.stdTimeFunctions;
  return pino({ level, base: fields, timestamp: isoTime, serializers: { err: describeError } }, standardOutput);
}

/**
 * How long a line waits while the pipe is full because its reader is slow. Then the line is lost. Later lines try once, without
 * waiting, until one can be written.
 */
const PATIENCE_MS = 1_000;
const NAP_MS = 5;

/**
 * Replaces pino's own destination (sonic-boom 4). sonic-boom keeps each line that a full disk refuses, and tries again. After a
 * fatal line it tries for ever, so that a process that must end does not end.
 *
 * Other processes may write to the same pipe. Any of them, for example a runner that started this process, may have made the pipe
 * non-blocking for all. Then a write to a full pipe fails with EAGAIN, and this class waits, as a blocking write would.
 */
class StandardOutput {
  #isPatient = true;
  /** True if the last line was written only in part. A line break must then separate it from the next line. */
  #isTorn = false;

  write(line: string): void {
    const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
    let at = 0;
    try {
      while (at < bytes.length) at += this.#writeSome(bytes, at);
      this.#isPatient = true;
      this.#isTorn = false;
    } catch {
      // The log itself has failed, so there is nowhere to report it.
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
 * The fields of an error that are logged. Properties that libraries add are left out: ioredis adds the command with its
 * arguments, which may be the password of `AUTH` or a batch of 13 KB.
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
