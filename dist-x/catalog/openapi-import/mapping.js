import { MAX_OPERATIONS, MAX_SUMMARY_LENGTH, OPERATION_METHODS, shapeOf, } from '../operations/operation.js';
import { parsePrice } from '../price.js';
import { isVersion30 } from './document.js';
import { DocumentFault } from './document-fault.js';
import { fitOperations } from './fit-operations.js';
import { isObject, listOf, memberOf, objectOf, quoted, storableText } from './json.js';
import { mediaOf, partsOf } from './parts.js';
import { Places } from './places.js';
import { References } from './references.js';
/** Maximum skipped operations that are listed. A document can have 40 000, and a list of them would be longer than the document. */
export const MAX_SKIPPED = 500;
/** Maximum notes on one operation. A schema can have thousands of references that lead nowhere. */
const MAX_NOTES = 10;
/** Maximum characters of a text in which a summary is looked for. The text may be as long as the document. */
const MAX_READ = 2_000;
/** Members of a path in a document → methods. */
const METHODS = new Map(OPERATION_METHODS.map((method) => [method.toLowerCase(), method]));
/** Methods of OpenAPI that operations do not have → why. */
const OTHER_METHODS = new Map([
    ['head', 'HEAD has no operations of its own: those of GET stand for it'],
    ['options', 'the gateway answers OPTIONS itself'],
    ['trace', 'the gateway does not forward TRACE'],
]);
/** Headers that OpenAPI itself ignores as parameters, and those that the gateway never forwards (docs/api.md, 'Proxy'). */
const SAID_ELSEWHERE = /^(?:accept|content-type|authorization)$/i;
const NOT_FORWARDED = /^(?:cookie|x-api-key|api-key|x-goog-api-key|x-auth-token|host|expect|proxy-.*|x-acf-.*)$/i;
/**
 * Makes operations of a document that has passed `readDocument`.
 *
 * @throws DocumentFault
 */
export function mapDocument(document, listing) {
    const mapping = new Mapping(document, listing);
    mapping.readPaths();
    return mapping.finish();
}
class Mapping {
    #document;
    #references;
    #places;
    /** By method and shape of the path, so that a price survives another name in braces. */
    #prices;
    #entries = [];
    /** Method and shape of the path → path of the operation that was taken over. */
    #taken = new Map();
    #skipped = [];
    #skippedTotal = 0;
    constructor(document, { endpoint, prices }) {
        this.#document = document;
        this.#references = new References(document);
        this.#places = new Places(document, endpoint);
        this.#prices = new Map(prices.map((stored) => [keyOf(stored.method, stored.path), stored]));
    }
    readPaths() {
        for (const [path, value] of Object.entries(objectOf(this.#document.paths))) {
            // Other members are extensions.
            if (path[0] !== '/')
                continue;
            const item = this.#references.follow(value);
            if ('fault' in item)
                this.#skip('*', path, item.fault);
            else
                this.#readItem(path, item.object);
        }
        for (const name of Object.keys(objectOf(this.#document.webhooks))) {
            this.#skip('*', name, 'is a webhook, which the service calls and not its buyer');
        }
    }
    finish() {
        const fitted = fitOperations(this.#entries.map(({ draft }) => draft));
        const changed = fitted.flatMap(({ operation: { method, path }, notes }, index) => {
            const all = [...new Set([...this.#entries[index].notes, ...notes])];
            const told = all.length <= MAX_NOTES ? all : [...all.slice(0, MAX_NOTES - 1), `and ${all.length - MAX_NOTES + 1} more`];
            return told.map((note) => ({ method, path, note }));
        });
        return {
            operations: fitted.map(({ operation }) => operation),
            skipped: this.#skipped,
            skippedTotal: this.#skippedTotal,
            changed: [...changed, ...this.#lostPrices()],
        };
    }
    /** A price is not lost in silence: without its operation, calls cost what the listing costs. */
    #lostPrices() {
        return [...this.#prices]
            .filter(([key]) => !this.#taken.has(key))
            .map(([, { method, path, price }]) => ({
            method,
            path,
            note: `is no longer an operation; its price of ${price} USD is gone`,
        }));
    }
    #readItem(path, item) {
        for (const [name, value] of Object.entries(item)) {
            const why = OTHER_METHODS.get(name);
            const method = METHODS.get(name);
            if (why !== undefined)
                this.#skip(name.toUpperCase(), path, why);
            else if (method !== undefined && isObject(value))
                this.#readOperation(method, path, item, value);
        }
    }
    #readOperation(method, path, item, operation) {
        // Read before anything else: a price that is wrong must not be found out by chance.
        const price = readPrice(operation, `${method} ${quoted(path)}`);
        const place = this.#places.locate(path, item, operation);
        if ('reason' in place) {
            this.#skip(method, path, place.reason);
            return;
        }
        const key = keyOf(method, place.path);
        const refusal = this.#refusalOf(key);
        if (refusal === null) {
            this.#taken.set(key, place.path);
            this.#entries.push(this.#entry(method, place, item, operation, price));
        }
        else
            this.#skip(method, path, refusal);
    }
    #refusalOf(key) {
        const twin = this.#taken.get(key);
        if (twin !== undefined)
            return `is the same as ${twin}, or another spelling of it`;
        if (this.#entries.length < MAX_OPERATIONS)
            return null;
        return `a listing may have ${MAX_OPERATIONS} operations, and the document has others before it`;
    }
    #entry(method, { path, names }, item, operation, given) {
        const notes = [];
        for (const [before, after] of names) {
            if (before !== after)
                notes.push(`the path parameter ${quoted(before)} is called ${after}`);
        }
        if (isObject(operation.callbacks))
            notes.push('its callbacks are left out');
        const isDeprecated = operation.deprecated === true;
        if (isDeprecated)
            notes.push('is deprecated, as its summary says');
        const stored = this.#prices.get(keyOf(method, path))?.price;
        const price = given ?? stored;
        if (given === undefined && stored !== undefined)
            notes.push(`keeps its price of ${stored} USD, as the document has none`);
        const parts = partsOf({
            references: this.#references,
            is30: isVersion30(this.#document),
            pathNames: names,
            parameters: this.#parameters(item, operation, notes),
            body: this.#body(operation, notes),
            response: this.#response(operation, notes),
        });
        const summary = summaryOf(operation, `${method} ${path}`, isDeprecated);
        return { draft: { operation: { method, path, summary, ...(price === undefined ? {} : { price }) }, parts }, notes };
    }
    /** The parameters of the operation, and those of its path that it does not replace. */
    #parameters(item, operation, notes) {
        const found = new Map();
        for (const value of [...listOf(item.parameters), ...listOf(operation.parameters)]) {
            const parameter = this.#references.follow(value);
            if ('fault' in parameter) {
                notes.push(`a parameter is left out: ${parameter.fault}`);
                continue;
            }
            const { in: place, name } = parameter.object;
            if (typeof name !== 'string')
                continue;
            if (name === '__proto__')
                notes.push('the parameter __proto__ is left out: programs that copy it could be harmed');
            else if (place === 'cookie' || (place === 'header' && NOT_FORWARDED.test(name))) {
                notes.push(`the ${place} ${quoted(name)} is left out: the gateway does not forward it`);
            }
            else if (place !== 'header' || !SAID_ELSEWHERE.test(name))
                found.set(`${place} ${name}`, parameter.object);
        }
        return [...found.values()];
    }
    #body({ requestBody }, notes) {
        if (requestBody === undefined)
            return null;
        const body = this.#references.follow(requestBody);
        if ('fault' in body) {
            notes.push(`the body is left out: ${body.fault}`);
            return null;
        }
        const media = mediaOf(body.object.content);
        if (media !== null && !media.isJson)
            notes.push(`the body is ${quoted(media.type)} and not JSON, as its schema says`);
        return body.object;
    }
    #response({ responses }, notes) {
        for (const [status, value] of Object.entries(objectOf(responses))) {
            if (!/^2(?:\d\d|XX)$/i.test(status))
                continue;
            const response = this.#references.follow(value);
            if ('fault' in response)
                notes.push(`the response ${status} is left out: ${response.fault}`);
            else if (mediaOf(response.object.content) !== null)
                return response.object;
        }
        return null;
    }
    #skip(method, path, reason) {
        this.#skippedTotal++;
        if (this.#skipped.length < MAX_SKIPPED)
            this.#skipped.push({ method, path: quoted(path), reason });
    }
}
const keyOf = (method, path) => `${method} ${shapeOf(path, 'path')}`;
/** `x-price` is a price, so a wrong one is a fault of the document: nothing is taken over at another price than its author meant. */
function readPrice(operation, where) {
    const price = memberOf(operation, 'x-price');
    if (price === undefined)
        return undefined;
    const parsed = typeof price === 'number' ? parsePrice(price) : { fault: 'must be a number of USD' };
    if ('fault' in parsed)
        throw new DocumentFault(`${where}: x-price: ${parsed.fault}.`);
    return price;
}
/** The summary, or else the first sentence of the description, or the operationId. */
function summaryOf({ summary, description, operationId }, fallback, isDeprecated) {
    const texts = [summary, firstSentence(description), operationId, fallback];
    const [text = fallback] = texts
        .filter((value) => typeof value === 'string')
        .map(oneLine)
        .filter((line) => line !== '');
    const points = [...(isDeprecated ? `Deprecated. ${text}` : text)];
    return points.length <= MAX_SUMMARY_LENGTH ? points.join('') : `${points.slice(0, MAX_SUMMARY_LENGTH - 1).join('')}…`;
}
const firstSentence = (description) => typeof description === 'string'
    ? /^[\s\S]*?(?:[.!?](?=\s|$)|[。！？]|\n\s*\n|$)/u.exec(description.slice(0, MAX_READ))?.[0]
    : undefined;
const oneLine = (text) => storableText(text.slice(0, MAX_READ))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
//# sourceMappingURL=mapping.js.map