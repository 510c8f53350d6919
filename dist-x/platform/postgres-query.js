/**
 * @param run carries out the queries
 *
 * Tested by test/platform/postgres.test.ts, and by every test that asks Postgres.
 */
export function templateTag(run) {
    const tag = (texts, ...parts) => new Query(run, texts, parts);
    const anew = (texts, ...parts) => new Query((text, parameters) => run(text, parameters, { isPlannedAnew: true }), texts, parts);
    return Object.assign(tag, { unsafe: run, anew, text: (text) => new Query(run, [text], []) });
}
/** A query, or a part of another query. It runs when it is awaited; in another query's template it becomes part of that query. */
class Query {
    [Symbol.toStringTag] = 'Query';
    #run;
    #texts;
    #parts;
    #result = null;
    constructor(run, texts, parts) {
        this.#run = run;
        this.#texts = texts;
        this.#parts = parts;
    }
    /** Adds the query's values to `parameters`. @returns the query's text, with `$1`, `$2`, … in place of the values */
    write(parameters) {
        const write = (part) => {
            if (part instanceof Query)
                return part.write(parameters);
            if (isListOfQueries(part))
                return part.map(write).join(' ');
            return `$${parameters.push(part)}`;
        };
        return String.raw({ raw: this.#texts }, ...this.#parts.map(write));
    }
    #start() {
        const parameters = [];
        this.#result ??= this.#run(this.write(parameters), parameters);
        return this.#result;
    }
    // biome-ignore lint/suspicious/noThenProperty: it is awaited in place of the client's own query
    then = (...handlers) => this.#start().then(...handlers);
    catch = (onFailed) => this.#start().catch(onFailed);
    finally = (onEnd) => this.#start().finally(onEnd);
}
const isListOfQueries = (part) => Array.isArray(part) && part[0] instanceof Query;
//# sourceMappingURL=postgres-query.js.map