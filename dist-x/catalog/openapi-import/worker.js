import { parentPort } from 'node:worker_threads';
import { readDocument } from './document.js';
import { DocumentFault } from './document-fault.js';
import { mapDocument } from './mapping.js';
/**
 * The thread in which a document is read. It may take seconds, and calls must not wait for it. Started by importer.ts for one
 * document, and ended after its answer.
 */
parentPort?.once('message', async (request) => {
    parentPort?.postMessage(await answer(request));
});
async function answer({ bytes, listing }) {
    try {
        return { imported: mapDocument(await readDocument(bytes), listing) };
    }
    catch (error) {
        if (error instanceof DocumentFault)
            return { fault: { message: error.message, isJson: error.isJson } };
        throw error;
    }
}
//# sourceMappingURL=worker.js.map