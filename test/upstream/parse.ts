import type { ParsedHead } from '../../src/upstream/response-head.ts';
import { ResponseParser } from '../../src/upstream/response-parser.ts';

export type Parsed = {
  state: string;
  malformed: string;
  head: ParsedHead | null;
  body: string;
  /** Octets that were not used. */
  surplus: number;
};

export type ParseOptions = { isHeadRequest?: boolean; maxHeadBytes?: number; endOfInput?: boolean };

/** Feeds the pieces to a new parser as reads of their own. */
export function parse(pieces: readonly (string | Buffer)[], options: ParseOptions = {}): Parsed {
  const parsed: Parsed = { state: '', malformed: '', head: null, body: '', surplus: 0 };
  const parser = new ResponseParser(
    {
      onParsedHead(head) {
        parsed.head = head;
      },
      onParsedBody(chunk) {
        parsed.body += chunk.toString('latin1');
      },
    },
    options.maxHeadBytes ?? 4096,
  );
  parser.begin(options.isHeadRequest ?? false);
  for (const piece of pieces) {
    // As the connection does it: octets at the start of a larger buffer that holds somebody else's after them.
    const octets = Buffer.from(piece as string, 'latin1');
    const shared = Buffer.concat([octets, Buffer.from('HTTP/1.1 500 stale\r\n\r\n')]);
    const used = parser.execute(shared, 0, octets.length);
    parsed.surplus += octets.length - used;
    if (parser.state === 'failed') break;
  }
  if (options.endOfInput === true) parser.finish();
  parsed.state = parser.state;
  parsed.malformed = parser.malformed;
  return parsed;
}
