import { DocumentFault } from './document-fault.ts';

/** Maximum aliases (`*name`) of a YAML document. The result of expanding them is bounded by the maximum number of values. */
const MAX_ALIASES = 100;

/**
 * Reads the text of a document: JSON if it begins as a JSON object or list does, otherwise YAML with the core schema of YAML 1.2, so
 * that `yes`, dates and `<<` mean nothing special.
 *
 * @throws DocumentFault
 */
export async function readText(bytes: Uint8Array): Promise<unknown> {
  const text = decoded(bytes);
  return /^\s*[{[]/.test(text) ? fromJson(text) : fromYaml(text);
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new DocumentFault('The body is not valid UTF-8.', { isJson: false });
  }
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DocumentFault('The body is not valid JSON.', { isJson: false });
  }
}

/** Maximum length of the parser's message: it may quote a name of the document, of any length. */
const MAX_REASON = 200;

/** The parser is loaded only for YAML: an import has three seconds, and most documents are JSON. */
async function fromYaml(text: string): Promise<unknown> {
  const { CORE_SCHEMA, load, YAMLException } = await import('js-yaml');
  try {
    return load(text, { schema: CORE_SCHEMA, maxAliases: MAX_ALIASES });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = error.mark === undefined ? '' : ` in line ${error.mark.line + 1}`;
    throw new DocumentFault(`body: is not YAML that can be imported: ${error.reason.slice(0, MAX_REASON)}${line}.`);
  }
}
