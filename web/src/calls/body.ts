// What came of a body, as text that people can read. Tested by test/web/call-body.test.ts.

import { EventParser, type StreamEvent } from './event-stream.ts';

/** Maximum characters that are shown; what comes behind them is counted. */
export const MAX_SHOWN = 1_048_576;

export type CallBody = {
  readonly kind: 'text' | 'events' | 'binary';
  readonly text: string;
  readonly events: readonly StreamEvent[];
  readonly bytes: number;
  readonly mediaType: string;
  readonly isCut: boolean;
};

const TEXT =
  /^(text\/|application\/(.*[+/-])?(json|xml|javascript|x-www-form-urlencoded|yaml|x-ndjson|graphql|problem)\b)/i;

export class BodyReader {
  readonly #mediaType: string;
  readonly #decoder = new TextDecoder();
  readonly #parser: EventParser | null;
  readonly #events: StreamEvent[] = [];
  #isText: boolean | null;
  #text = '';
  #bytes = 0;
  #isCut = false;

  /** @param contentType  of the response; '' if it has none */
  constructor(contentType: string) {
    this.#mediaType = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
    this.#parser = this.#mediaType === 'text/event-stream' ? new EventParser() : null;
    // Of what has no type, or says only that it is bytes, the first piece decides.
    const isUnknown = this.#mediaType === '' || this.#mediaType === 'application/octet-stream';
    this.#isText = isUnknown ? null : TEXT.test(this.#mediaType);
  }

  take(piece: Uint8Array): void {
    this.#bytes += piece.length;
    this.#isText ??= looksLikeText(piece);
    if (!this.#isText || this.#isCut) return;
    this.#add(this.#decoder.decode(piece, { stream: true }));
  }

  shown(): CallBody {
    return {
      kind: this.#isText === false ? 'binary' : this.#parser === null ? 'text' : 'events',
      text: this.#text,
      events: [...this.#events],
      bytes: this.#bytes,
      mediaType: this.#mediaType,
      isCut: this.#isCut,
    };
  }

  /** The body is whole: JSON is then written over several lines. */
  end(): CallBody {
    if (this.#isText && !this.#isCut) this.#add(this.#decoder.decode());
    this.#events.push(...(this.#parser?.end() ?? []));
    const shown = this.shown();
    return shown.kind === 'text' && !shown.isCut ? { ...shown, text: readable(shown.text) } : shown;
  }

  #add(text: string): void {
    const room = MAX_SHOWN - this.#text.length;
    this.#isCut = text.length > room;
    const taken = text.slice(0, room);
    this.#text += taken;
    this.#events.push(...(this.#parser?.take(taken) ?? []));
  }
}

function looksLikeText(piece: Uint8Array): boolean {
  try {
    // A piece may end within a character, so `stream`.
    return !new TextDecoder('utf-8', { fatal: true }).decode(piece, { stream: true }).includes('\0');
  } catch {
    return false;
  }
}

/** Deeper JSON stays as it came. */
const MAX_DEPTH = 100;

/** JSON over several lines, its numbers and strings exactly as they came; any other text as it is. */
export function readable(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return text;
  } catch {
    return text;
  }
  let made = '';
  let depth = 0;
  const line = (): string => `\n${'  '.repeat(depth)}`;
  // Strings, brackets that are empty, single signs, and all else between them.
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s"{}[\],:]+/gs)) {
    if (token === '{' || token === '[') {
      depth += 1;
      if (depth > MAX_DEPTH) return text;
      made += token + line();
    } else if (token === '}' || token === ']') {
      depth -= 1;
      made += line() + token;
    } else if (token === ',') made += token + line();
    else if (token === ':') made += ': ';
    else made += /^[{[]/.test(token) ? token.replace(/\s/g, '') : token;
  }
  return made;
}
