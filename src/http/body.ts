import type { CallerEvents, CallerStream } from '../gate/caller-io.ts';

/**
 * Reads a whole request body.
 *
 * @returns the bytes, or null if there are more than `maxBytes`. Never resolves if the caller leaves, because nobody is left
 *   to answer.
 */
export function readBody(stream: CallerStream, maxBytes: number): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const events: CallerEvents = {
      onCallerBody(chunk, last) {
        length += chunk.length;
        if (length > maxBytes) {
          resolve(null);
          return;
        }
        chunks.push(Buffer.from(chunk));
        if (last) resolve(Buffer.concat(chunks));
      },
      onCallerGone() {},
      onCallerWritable() {},
    };
    stream.attach(events);
  });
}
