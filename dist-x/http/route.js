/** The query of pages that people link to, and of health checks: parameters that others add, such as a cache-buster, are ignored. */
export const ANY_QUERY = { type: 'object', additionalProperties: true, properties: {} };
/**
 * A body that may be too long to be made at once, without a declared length. The next piece is asked for when the caller has room
 * for it. A piece has at most some hundred kilobytes.
 */
export class BodyInPieces {
    pieces;
    constructor(pieces) {
        this.pieces = pieces;
    }
}
//# sourceMappingURL=route.js.map