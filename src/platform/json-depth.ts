/**
 * Whether arrays and objects are nested more than `levels` deep. `JSON.parse` reads any depth, but `JSON.stringify` overflows the
 * stack at a few thousand levels. This recursion ends after `levels`.
 */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member));
}
