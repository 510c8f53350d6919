/**
 * Maximum depth of a JSON value that passes between a model and a service as a value. `JSON.parse` reads any depth, but
 * `JSON.stringify` overflows the stack at some thousand levels. What is deeper is passed on as text, or refused.
 */
const MAX_DEPTH = 100;

/** Whether arrays and objects are nested more than `levels` deep. */
export function isTooDeep(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isTooDeep(member, levels - 1));
}
