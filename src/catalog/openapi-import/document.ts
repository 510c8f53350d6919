import { Validator } from '@seriousme/openapi-schema-validator';
import { DocumentFault } from './document-fault.ts';
import { readText } from './document-text.ts';
import { isObject, type JsonObject, quoted } from './json.ts';

/** Maximum depth of a document. The validator is recursive; real documents have 15 to 30 levels. */
const MAX_DOCUMENT_DEPTH = 100;
/** Maximum values in a document, which bounds the memory of reading it. A real one of 2 MiB has about 100 000. */
const MAX_VALUES = 400_000;

/** A document that is valid OpenAPI, except that its references may be broken. */
export type OpenApiDocument = JsonObject & { readonly openapi: string };

/**
 * Reads a document and checks it against the official schema of its version.
 *
 * @throws DocumentFault
 */
export async function readDocument(bytes: Uint8Array): Promise<OpenApiDocument> {
  const value = await readText(bytes);
  if (!isObject(value))
    throw new DocumentFault('body: must be an OpenAPI document, which is an object in JSON or YAML.');
  refuseOtherVersions(value);
  refuseUnbounded(value);
  await validate(value);
  return value as OpenApiDocument;
}

function refuseOtherVersions(document: JsonObject): void {
  if (document.swagger !== undefined) {
    throw new DocumentFault('swagger: is Swagger 2.0. Convert the document to OpenAPI 3.0 or 3.1 and send that.');
  }
  if (typeof document.openapi === 'string' && /^3\.[01]\.\d{1,3}$/.test(document.openapi)) return;
  throw new DocumentFault('openapi: must be a version of OpenAPI 3.0 or 3.1, such as "3.1.0".');
}

function refuseUnbounded(document: JsonObject): void {
  let values = 0;
  // A loop instead of recursion: the caller chooses how deep the document is.
  const left: [value: unknown, depth: number][] = [[document, 0]];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [value, depth] = next;
    if (++values > MAX_VALUES) throw new DocumentFault(`body: must have at most ${MAX_VALUES} values.`);
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new DocumentFault('body: must not have .inf or .nan, which JSON does not know.');
    }
    if (typeof value !== 'object' || value === null) continue;
    if (depth >= MAX_DOCUMENT_DEPTH) {
      throw new DocumentFault(`body: must not be nested deeper than ${MAX_DOCUMENT_DEPTH} levels.`);
    }
    // Programs that copy an object with this key, ours or a buyer's, would set the prototype of the copy.
    if (Object.hasOwn(value, '__proto__')) throw new DocumentFault('body: must not have the key __proto__.');
    for (const child of Object.values(value)) left.push([child, depth + 1]);
  }
}

/** The validator compiles the schema of a version when it first needs it. */
const VALIDATOR = new Validator();

/**
 * The validator gets an object, never text: it would take a text without a line break for the name of a file. It has no code that
 * opens a connection.
 */
async function validate(document: JsonObject): Promise<void> {
  const { errors } = await VALIDATOR.validate(document);
  // An error that is a text says that some reference is broken or leads out of the document. That concerns only the operations that
  // use it; it is reported when they are mapped.
  if (!Array.isArray(errors)) return;
  // If the schema has alternatives, each of them reports an error. The one deepest in the document is the most specific.
  const depthOf = (path: string): number => path.split('/').length;
  const [first, ...others] = errors.filter(({ params }) => params.missingProperty !== '$ref');
  if (first === undefined) throw new DocumentFault('body: is not valid OpenAPI.');
  const deepest = others.reduce((a, b) => (depthOf(b.instancePath) > depthOf(a.instancePath) ? b : a), first);
  const where = deepest.instancePath === '' ? 'body' : quoted(deepest.instancePath.slice(1));
  const { allowedValues, additionalProperty, unevaluatedProperty } = deepest.params;
  const what = Array.isArray(allowedValues) ? `must be one of ${allowedValues.join(', ')}` : deepest.message;
  const name = deepest.propertyName ?? additionalProperty ?? unevaluatedProperty;
  const which = typeof name === 'string' ? ` (${quoted(name)})` : '';
  throw new DocumentFault(`${where}: is not valid OpenAPI ${document.openapi}: ${what}${which}.`);
}
