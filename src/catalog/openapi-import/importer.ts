import { Worker } from 'node:worker_threads';
import { DocumentFault } from './document-fault.ts';
import type { Imported, ListingContext } from './mapping.ts';
import type { ImportAnswer, ImportRequest } from './worker.ts';

/** Maximum bytes of a document. Those of large services have 1 to 2 MiB once they are written without line breaks. */
export const MAX_DOCUMENT_BYTES = 2_097_152;
/**
 * Maximum time of one import. A page must be ready within 5 s, which includes the time for storing. A real document of 1.8 MiB took
 * 1.0 s on a machine with three times its maximum load.
 */
const DEADLINE_MS = 4_000;
/** Maximum heap of the thread. Documents with as many values as are allowed (`MAX_VALUES`) took 160 MB. */
const MAX_HEAP_MB = 256;

/** Thrown while another document is being read. */
export class ImporterBusy extends Error {}

type ImporterOptions = {
  /** Finds worker.js; by default beside this file. Tests run the sources, which a thread of Node 20 cannot load. */
  readonly workerFile?: (() => URL) | undefined;
  readonly deadlineMs?: number;
};

/**
 * Makes operations from OpenAPI documents, each in a separate thread that is bounded in time and memory. One document at a time: a
 * second thread would take a second core from the calls.
 */
export class OpenApiImporter {
  readonly #workerFile: () => URL;
  readonly #deadlineMs: number;
  #busy = false;

  constructor({
    workerFile = () => new URL('./worker.js', import.meta.url),
    deadlineMs = DEADLINE_MS,
  }: ImporterOptions = {}) {
    this.#workerFile = workerFile;
    this.#deadlineMs = deadlineMs;
  }

  /**
   * @param bytes the document, as it was sent
   * @throws DocumentFault  for its author
   * @throws ImporterBusy
   */
  async import(bytes: Uint8Array, listing: ListingContext): Promise<Imported> {
    if (this.#busy) throw new ImporterBusy();
    this.#busy = true;
    let worker: Worker | undefined;
    try {
      worker = this.#start();
      worker.postMessage({ bytes, listing } satisfies ImportRequest);
      const answer = await this.#answerOf(worker);
      if ('imported' in answer) return answer.imported;
      throw new DocumentFault(answer.fault.message, answer.fault);
    } finally {
      await worker?.terminate();
      this.#busy = false;
    }
  }

  #start(): Worker {
    return new Worker(this.#workerFile(), {
      // The thread needs no settings, and those of the gateway contain secrets.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
  }

  #answerOf(worker: Worker): Promise<ImportAnswer> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(tooSlow(this.#deadlineMs)), this.#deadlineMs);
      worker.once('message', (answer: ImportAnswer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      worker.once('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        const isTooBig = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
        reject(
          isTooBig
            ? new DocumentFault('body: needs more memory than an import may use. Send a smaller document.')
            : error,
        );
      });
    });
  }
}

const tooSlow = (deadlineMs: number): DocumentFault =>
  new DocumentFault(
    `body: could not be read within ${deadlineMs / 1_000} s. Send a smaller document, or try again when the gateway is less busy.`,
  );
