import { parentPort } from 'node:worker_threads';
import { readDocument } from './document.ts';
import { DocumentFault } from './document-fault.ts';
import { type Imported, type ListingContext, mapDocument } from './mapping.ts';

/** The single request to the thread. */
export type ImportRequest = { readonly bytes: Uint8Array; readonly listing: ListingContext };
export type ImportAnswer =
  | { readonly imported: Imported }
  | { readonly fault: { readonly message: string; readonly isJson: boolean } };

/**
 * The thread in which a document is read. It may take seconds, and calls must not wait for it. Started by importer.ts for one
 * document, and ended after its answer.
 */
parentPort?.once('message', async (request: ImportRequest) => {
  parentPort?.postMessage(await answer(request));
});

async function answer({ bytes, listing }: ImportRequest): Promise<ImportAnswer> {
  try {
    return { imported: mapDocument(await readDocument(bytes), listing) };
  } catch (error) {
    if (error instanceof DocumentFault) return { fault: { message: error.message, isJson: error.isJson } };
    throw error;
  }
}
