/**
 * Whether arrays and objects are nested more than `levels` deep. `JSON.parse` reads any depth, but `JSON.stringify` overflows the
 * stack at some thousand levels. The recursion itself ends after `levels`.
 */
export function isDeeperThan(levels, value) {
    if (typeof value !== 'object' || value === null)
        return false;
    return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member));
}
//# sourceMappingURL=json-depth.js.map