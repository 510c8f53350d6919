// @ts-check

const headEnd = Buffer.from('\r\n\r\n');
const maxHeadBytes = 64 * 1024;
const contentLength = /\r\ncontent-length: *(\d+)/i;
const chunked = /\r\ntransfer-encoding: *chunked/i;

/**
 * Finds where each response on a connection ends. It checks nothing, because the servers of the benchmark are known to speak HTTP
 * correctly.
 */
export class ResponseReader {
  #onResponse;
  /** @type {Buffer} */
  #head = Buffer.alloc(0);
  #status = 0;
  #remaining = 0;
  /** @type {'head' | 'length' | 'chunked'} */
  #state = 'head';
  #tail = '';

  /** @param {(status: number) => void} onResponse */
  constructor(onResponse) {
    this.#onResponse = onResponse;
  }

  /** @param {Buffer} chunk */
  push(chunk) {
    if (this.#state === 'head') this.#readHead(chunk);
    else this.#readBody(chunk);
  }

  /** @param {Buffer} chunk */
  #readHead(chunk) {
    this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    const end = this.#head.indexOf(headEnd);
    if (end < 0) {
      if (this.#head.length > maxHeadBytes) throw new Error('the response head has no end');
      return;
    }
    const head = this.#head.toString('latin1', 0, end + 2);
    const rest = this.#head.subarray(end + headEnd.length);
    this.#head = Buffer.alloc(0);
    this.#status = Number(head.slice(9, 12));
    this.#state = chunked.test(head) ? 'chunked' : 'length';
    this.#remaining = Number(contentLength.exec(head)?.[1] ?? 0);
    this.#tail = '';
    this.#readBody(rest);
  }

  /** @param {Buffer} chunk */
  #readBody(chunk) {
    if (this.#state === 'chunked') {
      // No second request is sent before this response is complete, so what arrives ends with the last chunk.
      this.#tail = (this.#tail + chunk.toString('latin1', Math.max(0, chunk.length - 7))).slice(-7);
      if (this.#tail.endsWith('0\r\n\r\n')) this.#finish();
      return;
    }
    this.#remaining -= chunk.length;
    if (this.#remaining <= 0) this.#finish();
  }

  #finish() {
    this.#state = 'head';
    this.#onResponse(this.#status);
  }
}
