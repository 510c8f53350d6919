import type { ParsedHead } from '../../src/upstream/response-head.ts';
import { ResponseParser } from '../../src/upstream/response-parser.ts';

type Parsed = {
  state: string;
  malformed: string;
  head: ParsedHead | null;
  body: string;
  trailers: readonly string[];
  /** How many octets were left over. */
  surplus: number;
};

export type ParseOptions = {
  isHeadRequest?: boolean;
  maxHeadBytes?: number;
  endOfInput?: boolean;
  wantsTrailers?: boolean;
};

/** Feeds the pieces to a new parser, each as a read of its own. */
export function parse(pieces: readonly (string | Buffer)[], options: ParseOptions = {}): Parsed {
  const parsed: Parsed = { state: '', malformed: '', head: null, body: '', trailers: [], surplus: 0 };
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
  parser.begin(options.isHeadRequest ?? false, options.wantsTrailers);
  for (const piece of pieces) {
    // As in the shared read buffer: after the octets come those of another connection.
    const octets = Buffer.from(piece as string, 'latin1');
    const shared = Buffer.concat([octets, Buffer.from('HTTP/1.1 500 stale\r\n\r\n')]);
    const used = parser.execute(shared, 0, octets.length);
    parsed.surplus += octets.length - used;
    if (parser.state === 'failed') break;
  }
  if (options.endOfInput === true) parser.finish();
  parsed.state = parser.state;
  parsed.malformed = parser.malformed;
  parsed.trailers = parser.trailers;
  return parsed;
}
