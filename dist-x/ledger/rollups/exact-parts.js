/**
 * Divides calls, in their order, into parts over which every sum is exact in a JavaScript number: it cannot reach 2^53. There is
 * one part, unless an amount or a latency is beyond anything that occurs. Postgres adds up the parts.
 */
export function exactParts(calls, boundedOf) {
    const parts = [];
    let part = [];
    let bound = 0;
    for (const call of calls) {
        const { heldMicros, latencyUs } = boundedOf(call);
        bound += Math.max(heldMicros, latencyUs);
        if (part.length === 0 || !Number.isSafeInteger(bound)) {
            bound = Math.max(heldMicros, latencyUs);
            part = [];
            parts.push(part);
        }
        part.push(call);
    }
    return parts;
}
//# sourceMappingURL=exact-parts.js.map