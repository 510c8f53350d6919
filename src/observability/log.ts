import { pino } from 'pino';

export type Log = {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  fatal(fields: object, message: string): void;
};

/** JSON lines on standard output. Header values and bodies are never logged, so no secret can be. */
export function createLog(level: string, fields: Readonly<Record<string, string>>): Log {
  return pino({ level, base: fields, timestamp: pino.stdTimeFunctions.isoTime });
}
