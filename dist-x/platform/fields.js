import { microsToUsd } from './money.js';
import { orNull, TIME, usd } from './schemas.js';
/** A value that JSON has as the row has it. */
export const plain = (schema) => ({ schema, json: (value) => value });
/** An amount: micro-USD in the row, US dollars in JSON. */
export const money = (description) => ({ schema: usd(description), json: microsToUsd });
export const time = (schema = TIME) => ({ schema, json: (value) => value.toISOString() });
export const timeOrNull = (schema = TIME) => ({
    schema: orNull(schema),
    json: (value) => value?.toISOString() ?? null,
});
/** The SQL of all stored fields for a SELECT. @param without  fields that this query has no use for */
export const selectList = (fields, without = []) => Object.entries(fields)
    .flatMap(([name, { column }]) => (column === undefined || without.includes(name) ? [] : `${column} AS ${name}`))
    .join(', ');
/**
 * @param by       `admin` sees every field, another audience its own fields and those for anyone
 * @param without  fields that it may see, but that this response leaves out
 */
export function view(fields, by, without = []) {
    const shown = Object.entries(fields).filter(([name, { audience }]) => (by === 'admin' || audience === 'anyone' || audience === by) && !without.some((hidden) => hidden === name));
    const of = (pick) => Object.fromEntries(shown.map(([name, field]) => [name, pick(field)]).filter(([, value]) => value !== undefined));
    const made = {
        names: shown.map(([name]) => name),
        schemas: of(({ schema }) => schema),
        example: of(({ example }) => example),
        json: (values) => {
            const written = {};
            for (const [name, { json }] of shown)
                written[name] = json(values[name]);
            return written;
        },
    };
    // The compiler cannot see that the filter above is `Seen`. test/platform/fields.test.ts compares them.
    return made;
}
//# sourceMappingURL=fields.js.map