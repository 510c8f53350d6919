import { readDocument } from '../../../src/catalog/openapi-import/document.ts';
import { type Imported, type ListingContext, mapDocument } from '../../../src/catalog/openapi-import/mapping.ts';

export const ENDPOINT = 'http://service.example';
/** A listing without prices and headers of its own, whose whole document is taken over. */
export const LISTING: ListingContext = {
  endpoint: ENDPOINT,
  addedHeaders: [],
  addedParameters: [],
  prices: [],
  tag: null,
};

/** A document with these paths; OpenAPI 3.1 unless `fields` say otherwise. */
export const documentOf = (paths: object, fields: object = {}): object => ({
  openapi: '3.1.0',
  info: { title: 'Test', version: '1' },
  paths,
  ...fields,
});

/** An operation whose response has this schema. */
export const answering = (schema: unknown, fields: object = {}): object => ({
  responses: { 200: { description: 'Good', content: { 'application/json': { schema } } } },
  ...fields,
});

export const bytesOf = (document: unknown): Uint8Array =>
  Buffer.from(typeof document === 'string' ? document : JSON.stringify(document));

/** Reads and maps a document in this thread. */
export async function importHere(document: unknown, listing: Partial<ListingContext> = {}): Promise<Imported> {
  return mapDocument(await readDocument(bytesOf(document)), { ...LISTING, ...listing });
}
