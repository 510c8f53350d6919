export { COUNT, CURRENCY, EXAMPLE, list, orNull, record, TEXT, TIME, UUID, usd } from '../platform/schemas.js';
/** A response whose body is JSON. */
export function json(description, schema, example, headers = {}) {
    return { description, headers, content: { 'application/json': { schema, example } } };
}
/** A response whose body is text. */
export const text = (example, description) => ({
    schema: { type: 'string', description },
    example,
});
//# sourceMappingURL=schemas.js.map