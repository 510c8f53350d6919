/** One server-sent event. */
export type ServerEvent = { readonly event: string; readonly data: string };

/** Reads server-sent events from a body: `EventSource` cannot send a key. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      for (const part of parts) yield parse(part);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parse(part: string): ServerEvent {
  const field = (name: string): string =>
    part
      .split('\n')
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join('\n');
  return { event: field('event') || 'message', data: field('data') };
}
