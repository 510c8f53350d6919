import { MAX_OPERATIONS, MAX_SUMMARY_LENGTH, MAX_TOOL_LENGTH, OPERATION_METHODS, OperationFault, storeOperations, } from '../catalog/operations/operation.js';
import { MAX_TEMPLATE_LENGTH } from '../catalog/operations/template.js';
import { MAX_PRICE_USD } from '../catalog/price.js';
import { ApiError } from '../errors.js';
import { violatedConstraint } from '../platform/postgres.js';
/** Operations as a provider writes them. Which fields an operation needs depends on the protocol: `readOperations` checks it. */
export const OPERATIONS = {
    type: ['array', 'null'],
    maxItems: MAX_OPERATIONS,
    description: 'How to call the service; null or an empty list: not told',
    items: {
        type: 'object',
        additionalProperties: false,
        properties: {
            method: { type: 'string', enum: [...OPERATION_METHODS], description: 'GET also stands for HEAD' },
            path: {
                type: 'string',
                maxLength: MAX_TEMPLATE_LENGTH,
                description: 'What follows the service id: literal segments, {name} for one segment, a last * for the rest',
            },
            tool: { type: 'string', minLength: 1, maxLength: MAX_TOOL_LENGTH, description: 'Of an MCP server' },
            summary: { type: 'string', minLength: 1, maxLength: MAX_SUMMARY_LENGTH },
            price: {
                type: 'number',
                minimum: 0,
                maximum: MAX_PRICE_USD,
                description: "USD per call, in place of the listing's price",
            },
            input: { type: 'object', description: 'JSON Schema of the request; it is not enforced' },
            output: { type: 'object', description: 'JSON Schema of the response; it is not enforced' },
            example: {
                type: 'object',
                additionalProperties: false,
                properties: { query: { type: 'object' }, body: {}, response: {} },
            },
        },
    },
};
const HTTP_FIELDS = ['method', 'path', 'summary'];
const ONLY_HTTP = ['method', 'path', 'input', 'output', 'example'];
/**
 * Reads `operations` of a request body that has passed its schema.
 *
 * @returns null if the listing is to have none
 */
export function readOperations(value, protocol) {
    if (value === null || value.length === 0)
        return null;
    for (const [index, operation] of value.entries())
        checkFields(operation, protocol, `operations.${index}`);
    try {
        return storeOperations(value);
    }
    catch (error) {
        if (error instanceof OperationFault)
            throw new ApiError('invalid_request', error.message);
        throw error;
    }
}
function checkFields(operation, protocol, field) {
    const required = protocol === 'mcp' ? ['tool'] : HTTP_FIELDS;
    const forbidden = protocol === 'mcp' ? ONLY_HTTP : ['tool'];
    for (const name of required) {
        if (!(name in operation))
            throw new ApiError('invalid_request', `${field}.${name}: is required.`);
    }
    for (const name of forbidden) {
        if (!(name in operation))
            continue;
        throw new ApiError('invalid_request', `${field}.${name}: is not known for a listing with protocol ${protocol}.`);
    }
}
const DEAR_OPERATIONS = "operations: an operation may cost more than the listing's price only with only_operations: true. Otherwise a call that matches no operation, such as another spelling of its path, would cost less.";
const ONLY_OPERATIONS = 'only_operations: needs operations. Without any, every call would be refused.';
/** The same for what counts now and for what is announced. */
const RULES = {
    services_dear_operations: DEAR_OPERATIONS,
    services_next_dear_operations: DEAR_OPERATIONS,
    services_only_operations: ONLY_OPERATIONS,
    services_next_only_operations: ONLY_OPERATIONS,
};
/**
 * Runs a write to the catalog. Postgres checks the rules between the fields of a listing, because a change may have only one of
 * them. A violation becomes `invalid_request`.
 */
export async function withinRules(write) {
    try {
        return await write;
    }
    catch (error) {
        const rule = RULES[violatedConstraint(error) ?? ''];
        throw rule === undefined ? error : new ApiError('invalid_request', rule);
    }
}
//# sourceMappingURL=operations.js.map