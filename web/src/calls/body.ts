// The part of a body that has arrived, as text that people can read. Tested by test/web/call-body.test.ts.

import { EventParser, type StreamEvent } from './event-stream.ts';

/** Maximum characters that are shown; further ones are only counted. */
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

  /** @param contentType of the response; '' if it has none */
  constructor(contentType: string) {
    this.#mediaType = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
    this.#parser = this.#mediaType === 'text/event-stream' ? new EventParser() : null;
    // If the type is missing, or only says that the body is bytes, the first piece decides.
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

  /** The body is complete: JSON is now written over several lines. */
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
    // `stream`, because a piece may end within a character.
    return !new TextDecoder('utf-8', { fatal: true }).decode(piece, { stream: true }).includes('\0');
  } catch {
    return false;
  }
}

/** Deeper JSON is not reformatted. */
const MAX_DEPTH = 100;

/** JSON over several lines, with numbers and strings unchanged; any other text unchanged. */
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
  // Strings, empty brackets, single signs, and everything between them.
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
