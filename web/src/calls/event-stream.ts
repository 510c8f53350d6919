// Parses server-sent events as the HTML standard says. Tested by test/web/call-body.test.ts.

/** `name` is '' for an event without one. */
export type StreamEvent = { readonly name: string; readonly data: string; readonly id: string };

/** Takes a stream in pieces, and returns the events that each piece completes. */
export class EventParser {
  #rest = '';

  take(text: string): StreamEvent[] {
    this.#rest += text;
    // A line ends with CR LF, LF or CR. A CR at the end may be the first half of CR LF.
    const blocks = this.#rest.split(/(?:\r\n|\n|\r(?!\n|$)){2}/);
    this.#rest = blocks.pop() ?? '';
    return blocks.flatMap(eventOf);
  }

  /** At the end of the stream, a last event counts even without its empty line. */
  end(): StreamEvent[] {
    const events = eventOf(this.#rest);
    this.#rest = '';
    return events;
  }
}

/** Reads the events of a body: `EventSource` cannot send a key. */
export async function* eventsIn(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.take(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function eventOf(block: string): StreamEvent[] {
  const fields = { event: '', id: '' };
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const [, name, value = ''] = /^([^:]+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'data') data.push(value);
    else if (name === 'event' || name === 'id') fields[name] = value;
  }
  if (data.length === 0 && fields.event === '') return [];
  return [{ name: fields.event, id: fields.id, data: data.join('\n') }];
}
