import {
  type HttpOperation,
  MAX_OPERATIONS,
  MAX_SUMMARY_LENGTH,
  OPERATION_METHODS,
  shapeOf,
} from '../operations/operation.ts';
import { parsePrice } from '../price.ts';
// Only the type is imported: the gateway imports this file, and loading the validator of documents took 10 MB and 0.1 s there.
import type { OpenApiDocument } from './document.ts';
import { DocumentFault } from './document-fault.ts';
import { type Draft, fitOperations } from './fit-operations.ts';
import { isObject, type JsonObject, listOf, memberOf, objectOf, quoted, storableText } from './json.ts';
import { Locations } from './locations.ts';
import { isPlainJson, mediaOf, partsOf } from './parts.ts';
import { References } from './references.ts';
import { Security } from './security.ts';
import { type Tag, Tags } from './tags.ts';

/** An operation that is stored and states a price. */
export type StoredPrice = Pick<HttpOperation, 'method' | 'path'> & Prices;
/** The prices that an operation states, in USD. */
type Prices = Pick<HttpOperation, 'price' | 'max_price'>;
/** An operation that was not imported. `method` is `*` if this concerns a whole path. */
type Skipped = { readonly method: string; readonly path: string; readonly reason: string };
/** An operation that was imported, but differs from the document. */
type Changed = { readonly method: string; readonly path: string; readonly note: string };

export type Imported = {
  readonly operations: readonly HttpOperation[];
  /** Tags of the document, with the number of their operations: the first `MAX_TAGS`, in descending order of that number. */
  readonly tags: readonly Tag[];
  /** The first `MAX_SKIPPED`. */
  readonly skipped: readonly Skipped[];
  readonly skippedTotal: number;
  readonly changed: readonly Changed[];
};

export type ListingContext = {
  readonly endpoint: string;
  /** Names of the headers that the listing adds to calls, in lower case. */
  readonly addedHeaders: readonly string[];
  /** Names of parameters that the gateway adds to the query of calls. */
  readonly addedParameters: readonly string[];
  /** Only operations with this tag, or with one of these, are imported; null: all. */
  readonly tag: string | null;
  /** Prices of the operations that the listing has. They are kept if the document states none. */
  readonly prices: readonly StoredPrice[];
};

/** Maximum skipped operations that are listed. A document can have 40 000, and their list would be longer than the document. */
export const MAX_SKIPPED = 500;
/** Maximum notes on one operation. A schema can have thousands of broken references. */
const MAX_NOTES = 10;

/** Maximum characters of a text that are searched for a summary. The text may be as long as the document. */
const MAX_READ = 2_000;

/** Members of a path in a document → methods. */
const METHODS: ReadonlyMap<string, string> = new Map(OPERATION_METHODS.map((method) => [method.toLowerCase(), method]));
/** Methods of OpenAPI that operations do not have → why. */
const OTHER_METHODS: ReadonlyMap<string, string> = new Map([
  ['head', 'HEAD has no operations of its own: those of GET apply to it'],
  ['options', 'the gateway answers OPTIONS itself'],
  ['trace', 'the gateway does not forward TRACE'],
]);

/** Headers that OpenAPI itself ignores as parameters, and those that the gateway never forwards (docs/api.md, 'Proxy'). */
const SAID_ELSEWHERE = /^(?:accept|content-type|authorization)$/i;
const NOT_FORWARDED = /^(?:cookie|x-api-key|api-key|x-goog-api-key|x-auth-token|host|expect|proxy-.*|x-acf-.*)$/i;

/** Maximum tags that are listed. */
const MAX_TAGS = 200;

type Entry = { readonly draft: Draft; readonly notes: string[] };

/**
 * Makes operations from a document that has passed `readDocument`.
 *
 * @throws DocumentFault
 */
export function mapDocument(document: OpenApiDocument, listing: ListingContext): Imported {
  const mapping = new Mapping(document, listing);
  mapping.readPaths();
  return mapping.finish();
}

class Mapping {
  readonly #document: OpenApiDocument;
  readonly #references: References;
  readonly #locations: Locations;
  /** By method and shape of the path, so that a price survives when a name in braces changes. */
  readonly #prices: ReadonlyMap<string, StoredPrice>;
  readonly #entries: Entry[] = [];
  /** Method and shape of the path → path of the imported operation. */
  readonly #taken = new Map<string, string>();
  readonly #skipped: Skipped[] = [];
  #skippedTotal = 0;
  readonly #tags: Tags;
  readonly #security: Security;

  constructor(document: OpenApiDocument, listing: ListingContext) {
    const { endpoint, prices, tag } = listing;
    this.#document = document;
    this.#tags = new Tags(tag);
    this.#references = new References(document);
    this.#locations = new Locations(document, endpoint);
    this.#security = new Security(document, this.#references, listing);
    this.#prices = new Map(prices.map((stored) => [keyOf(stored.method, stored.path), stored]));
  }

  readPaths(): void {
    for (const [path, value] of Object.entries(objectOf(this.#document.paths))) {
      // Other members are extensions.
      if (path[0] !== '/') continue;
      const item = this.#references.follow(value);
      if ('fault' in item) this.#skip('*', path, item.fault);
      else this.#readItem(path, item.object);
    }
    this.#tags.refuseUnknown();
    for (const name of Object.keys(objectOf(this.#document.webhooks))) {
      this.#skip('*', name, 'is a webhook: the service calls it, not the buyer');
    }
  }

  finish(): Imported {
    const fitted = fitOperations(this.#entries.map(({ draft }) => draft));
    const changed = fitted.flatMap(({ operation: { method, path }, notes }, index) => {
      const all = [...new Set([...(this.#entries[index] as Entry).notes, ...notes])];
      const told =
        all.length <= MAX_NOTES ? all : [...all.slice(0, MAX_NOTES - 1), `and ${all.length - MAX_NOTES + 1} more`];
      return told.map((note) => ({ method, path, note }));
    });
    return {
      operations: fitted.map(({ operation }) => operation),
      tags: this.#tags.counted().slice(0, MAX_TAGS),
      skipped: this.#skipped,
      skippedTotal: this.#skippedTotal,
      changed: [...changed, ...this.#lostPrices()],
    };
  }

  /** The loss of a price is reported: without the operation, its calls cost the listing's price. */
  #lostPrices(): Changed[] {
    return [...this.#prices]
      .filter(([key]) => !this.#taken.has(key))
      .map(([, { method, path, ...prices }]) => ({
        method,
        path,
        note: `is no longer an operation; its ${wordsOf(prices)} is gone`,
      }));
  }

  #readItem(path: string, item: JsonObject): void {
    for (const [name, value] of Object.entries(item)) {
      const why = OTHER_METHODS.get(name);
      const method = METHODS.get(name);
      if (why !== undefined) this.#skip(name.toUpperCase(), path, why);
      else if (method !== undefined && isObject(value)) this.#readOperation(method, path, item, value);
    }
  }

  #readOperation(method: string, path: string, item: JsonObject, operation: JsonObject): void {
    // Read before anything else: a wrong price must always be found.
    const price = readPrices(operation, `${method} ${quoted(path)}`);
    if (!this.#tags.isWanted(operation)) return;
    const location = this.#locations.locate(path, item, operation);
    if ('reason' in location) {
      this.#skip(method, path, location.reason);
      return;
    }
    const key = keyOf(method, location.path);
    const refusal = this.#refusalOf(key);
    if (refusal === null) {
      this.#taken.set(key, location.path);
      this.#entries.push(this.#entry(method, location, item, operation, price));
    } else this.#skip(method, path, refusal);
  }

  #refusalOf(key: string): string | null {
    const twin = this.#taken.get(key);
    if (twin !== undefined) return `is the same as ${twin}, or another spelling of it`;
    if (this.#entries.length < MAX_OPERATIONS) return null;
    return `a listing may have at most ${MAX_OPERATIONS} operations, and the document has as many before this one; choose operations with ?tag=`;
  }

  #entry(
    method: string,
    { path, names }: { readonly path: string; readonly names: ReadonlyMap<string, string> },
    item: JsonObject,
    operation: JsonObject,
    given: Prices | undefined,
  ): Entry {
    const notes: string[] = [];
    for (const [before, after] of names) {
      if (before !== after) notes.push(`the path parameter ${quoted(before)} is renamed to ${after}`);
    }
    if (isObject(operation.callbacks)) notes.push('its callbacks are left out');
    const isDeprecated = operation.deprecated === true;
    if (isDeprecated) notes.push('is deprecated, as its summary says');
    const stored = this.#prices.get(keyOf(method, path));
    const prices = given ?? pricesIn(stored);
    if (given === undefined && stored !== undefined)
      notes.push(`keeps its ${wordsOf(prices)}, as the document has none`);
    const needs = this.#security.of(operation);
    notes.push(...needs.notes);
    const parts = partsOf({
      credentials: needs.told,
      references: this.#references,
      is30: this.#document.openapi.startsWith('3.0.'),
      pathNames: names,
      parameters: this.#parameters(item, operation, notes),
      body: this.#body(operation, notes),
      response: this.#response(operation, notes),
    });
    const summary = summaryOf(operation, `${method} ${path}`, isDeprecated);
    return { draft: { operation: { method, path, summary, ...prices }, parts }, notes };
  }

  /** The parameters of the operation, and those of its path that it does not replace. */
  #parameters(item: JsonObject, operation: JsonObject, notes: string[]): JsonObject[] {
    const found = new Map<string, JsonObject>();
    for (const value of [...listOf(item.parameters), ...listOf(operation.parameters)]) {
      const parameter = this.#references.follow(value);
      if ('fault' in parameter) {
        notes.push(`a parameter is left out: ${parameter.fault}`);
        continue;
      }
      const { in: location, name } = parameter.object;
      if (typeof name !== 'string') continue;
      if (name === '__proto__')
        notes.push('the parameter __proto__ is left out: programs that copy it could be harmed');
      else if (location === 'cookie' || (location === 'header' && NOT_FORWARDED.test(name))) {
        notes.push(`the ${location} ${quoted(name)} is left out: the gateway does not forward it`);
      } else if (location !== 'header' || !SAID_ELSEWHERE.test(name))
        found.set(`${location} ${name}`, parameter.object);
    }
    return [...found.values()];
  }

  #body({ requestBody }: JsonObject, notes: string[]): JsonObject | null {
    if (requestBody === undefined) return null;
    const body = this.#references.follow(requestBody);
    if ('fault' in body) {
      notes.push(`the body is left out: ${body.fault}`);
      return null;
    }
    notes.push(...mediaNotes('body', body.object.content));
    return body.object;
  }

  #response({ responses }: JsonObject, notes: string[]): JsonObject | null {
    for (const [status, value] of Object.entries(objectOf(responses))) {
      if (!/^2(?:\d\d|XX)$/i.test(status)) continue;
      const response = this.#references.follow(value);
      if ('fault' in response) {
        notes.push(`the response ${status} is left out: ${response.fault}`);
        continue;
      }
      notes.push(...headerNotes(status, response.object.headers));
      if (mediaOf(response.object.content) === null) continue;
      notes.push(...mediaNotes(`response ${status}`, response.object.content));
      return response.object;
    }
    return null;
  }

  #skip(method: string, path: string, reason: string): void {
    this.#skippedTotal++;
    if (this.#skipped.length < MAX_SKIPPED) this.#skipped.push({ method, path: quoted(path), reason });
  }
}

/** Notes about the media types of a body or a response: only one type is described. */
function mediaNotes(what: string, content: unknown): string[] {
  const told = mediaOf(content);
  if (told === null) return [];
  const others = Object.keys(objectOf(content)).filter((type) => type !== told.type);
  return [
    ...(told.isJson
      ? isPlainJson(told.type)
        ? []
        : [`the ${what} is ${quoted(told.type)}, as its schema says`]
      : [`the ${what} is ${quoted(told.type)} and not JSON, as its schema says`]),
    ...(others.length === 0
      ? []
      : [`the ${what} is described as ${quoted(told.type)} only; left out: ${namesOf(others)}`]),
  ];
}

function headerNotes(status: string, headers: unknown): string[] {
  const names = Object.keys(objectOf(headers));
  return names.length === 0 ? [] : [`the headers of the response ${status} are left out: ${namesOf(names)}`];
}

/** Maximum names in one note; more are counted. */
const MAX_NAMES = 5;

function namesOf(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
  return `${names.slice(0, MAX_NAMES).map(quoted).join(', ')}${more}`;
}

const keyOf = (method: string, path: string): string => `${method} ${shapeOf(path, 'path')}`;

/**
 * The prices that a document states, or undefined if it states none. A wrong price is a fault of the document: nothing is imported
 * at a price that its author did not mean.
 */
function readPrices(operation: JsonObject, where: string): Prices | undefined {
  const price = readPrice(operation, 'x-price', where);
  const max = readPrice(operation, 'x-max-price', where);
  if (price === undefined && max === undefined) return undefined;
  if (max !== undefined && max < (price ?? 0)) {
    throw new DocumentFault(`${where}: x-max-price: must be at least x-price.`);
  }
  return pricesIn({ price, max_price: max });
}

function readPrice(operation: JsonObject, name: string, where: string): number | undefined {
  const price = memberOf(operation, name);
  if (price === undefined) return undefined;
  const parsed = typeof price === 'number' ? parsePrice(price) : { fault: 'must be a number of USD' };
  if ('fault' in parsed) throw new DocumentFault(`${where}: ${name}: ${parsed.fault}.`);
  return price as number;
}

/** Which of these prices an operation states. */
export const pricesIn = (of: { readonly [name in keyof Prices]: number | undefined } | undefined): Prices => ({
  ...(of?.price === undefined ? {} : { price: of.price }),
  ...(of?.max_price === undefined ? {} : { max_price: of.max_price }),
});

/** `price of 0.5 USD`, `price of 0.5 USD up to 2 USD` or `price up to 2 USD`. */
const wordsOf = ({ price, max_price: max }: Prices): string =>
  `price${price === undefined ? '' : ` of ${price} USD`}${max === undefined ? '' : ` up to ${max} USD`}`;

/** The summary, or else the first sentence of the description, or the operationId. */
function summaryOf({ summary, description, operationId }: JsonObject, fallback: string, isDeprecated: boolean): string {
  const texts = [summary, firstSentence(description), operationId, fallback];
  const [text = fallback] = texts
    .filter((value) => typeof value === 'string')
    .map(oneLine)
    .filter((line) => line !== '');
  const points = [...(isDeprecated ? `Deprecated. ${text}` : text)];
  return points.length <= MAX_SUMMARY_LENGTH ? points.join('') : `${points.slice(0, MAX_SUMMARY_LENGTH - 1).join('')}…`;
}

const firstSentence = (description: unknown): unknown =>
  typeof description === 'string'
    ? /^[\s\S]*?(?:[.!?](?=\s|$)|[。！？]|\n\s*\n|$)/u.exec(description.slice(0, MAX_READ))?.[0]
    : undefined;

const oneLine = (text: string): string =>
  storableText(text.slice(0, MAX_READ))
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
