import type { ResponseDescription } from '../http/route.ts';
import type { JsonSchema } from '../platform/schemas.ts';

export {
  COUNT,
  CURRENCY,
  EXAMPLE,
  list,
  ONE_LINE,
  orNull,
  record,
  TEXT,
  TIME,
  UUID,
  usd,
} from '../platform/schemas.ts';

/** A response whose body is JSON. */
export function json(
  description: string,
  schema: JsonSchema,
  example: unknown,
  headers: NonNullable<ResponseDescription['headers']> = {},
): ResponseDescription {
  return { description, headers, content: { 'application/json': { schema, example } } };
}

/** A response whose body is text. */
export const text = (example: string, description: string): { schema: JsonSchema; example: unknown } => ({
  schema: { type: 'string', description },
  example,
});
