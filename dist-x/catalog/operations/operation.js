import { isDeeperThan } from '../../platform/json-depth.js';
import { parsePrice } from '../price.js';
import { looseTemplate } from './spelling.js';
import { parseTemplate } from './template.js';
export const MAX_OPERATIONS = 200;
export const OPERATION_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
export const MAX_SUMMARY_LENGTH = 200;
export const MAX_TOOL_LENGTH = 128;
/** Maximum characters of all operations of a listing as JSON. Postgres keeps them, and one answer of /discover/{id} has them all. */
export const MAX_OPERATIONS_LENGTH = 262_144;
/** Maximum depth of a schema or an example. Deeper JSON can exhaust the stack of programs that read it, our own included. */
export const MAX_DEPTH = 64;
/** The fault of one of a listing's operations, worded so that it follows the field's name: `operations.3.path: must …`. */
export class OperationFault extends Error {
    /** @param field  'operations.3.path' */
    constructor(field, message) {
        super(`${field}: ${message}.`);
        this.name = 'OperationFault';
    }
}
/**
 * Checks what a schema cannot express, and makes what is stored. The operations have passed the schema of their protocol.
 *
 * @throws OperationFault
 */
export function storeOperations(operations) {
    const terms = operations.map(termsOf);
    refuseRepeated(terms);
    const json = storedText(operations);
    const prices = terms.flatMap((term) => term[term.length - 1] ?? []);
    return { json, terms: JSON.stringify(terms), maxPriceMicros: prices.length === 0 ? null : Math.max(...prices) };
}
/** @param text of `StoredOperations.terms` */
export function parseTerms(text) {
    return JSON.parse(text);
}
function storedText(operations) {
    for (const [index, operation] of operations.entries()) {
        if (isDeeperThan(MAX_DEPTH, operation)) {
            throw new OperationFault(`operations.${index}`, `must not be nested deeper than ${MAX_DEPTH} levels`);
        }
    }
    const json = JSON.stringify(operations);
    // Postgres refuses this character in JSON that it has to read.
    if (json.includes('\\u0000'))
        throw new OperationFault('operations', 'must not contain the character U+0000');
    if (json.length <= MAX_OPERATIONS_LENGTH)
        return json;
    throw new OperationFault('operations', `must be at most ${MAX_OPERATIONS_LENGTH} characters of JSON together`);
}
function termsOf(operation, index) {
    const field = `operations.${index}`;
    const price = operation.price === undefined ? null : readPrice(operation.price, `${field}.price`);
    return 'tool' in operation ? [operation.tool, price] : [operation.method, operation.path, price];
}
function readPrice(usd, field) {
    const price = parsePrice(usd);
    if ('fault' in price)
        throw new OperationFault(field, price.fault);
    return price.micros;
}
/**
 * Two operations may not be the same, nor two spellings of the same path: a service that ignores letter case would serve either
 * path at either price.
 */
function refuseRepeated(terms) {
    const seen = new Map();
    for (const [index, term] of terms.entries()) {
        const key = term.length === 2 ? term[0] : `${term[0]} ${shapeOf(term[1], `operations.${index}.path`)}`;
        const before = seen.get(key);
        if (before !== undefined) {
            throw new OperationFault(`operations.${index}`, `is the same as operations.${before}, or another spelling of it`);
        }
        seen.set(key, index);
    }
}
/** The same text for templates that differ only in names in braces, letter case or encoding. @throws OperationFault */
export function shapeOf(path, field) {
    const parsed = parseTemplate(path);
    if ('fault' in parsed)
        throw new OperationFault(field, parsed.fault);
    const shape = looseTemplate(parsed.segments).map(shapeOfSegment).join('/');
    // `/users` and `/users/` may be two operations: many services tell them apart.
    return parsed.segments.at(-1)?.kind === 'literal' && path.endsWith('/') ? `${shape}/` : shape;
}
function shapeOfSegment(segment) {
    if (segment.kind === 'literal')
        return segment.text;
    return segment.kind === 'name' ? '{}' : '*';
}
//# sourceMappingURL=operation.js.map