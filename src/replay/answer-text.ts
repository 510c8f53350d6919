import { isUtf8 } from 'node:buffer';

/** An answer as it is kept for repeats. */
export type Answer = {
  readonly status: number;
  /** Header lines in the form of `CallerStream.begin`: those of the service and, about the cost, those of the gateway. */
  readonly lines: string;
  readonly isAscii: boolean;
  /** As in the service's head: -1 if it declared none. */
  readonly contentLength: number;
  readonly hasBody: boolean;
  readonly body: Buffer;
};

/** The text of an answer in Redis: a line of JSON, then the body. A body that is not UTF-8 is stored in base64. */
export function encodeAnswer({ body, ...head }: Answer): string {
  const isText = isUtf8(body);
  return `${JSON.stringify({ ...head, isText })}\n${body.toString(isText ? 'utf8' : 'base64')}`;
}

/** @returns null for a text that `encodeAnswer` did not write, such as one of another version */
export function decodeAnswer(text: string): Answer | null {
  const end = text.indexOf('\n');
  let head: unknown;
  try {
    head = JSON.parse(text.slice(0, end));
  } catch {
    return null;
  }
  if (!isHead(head)) return null;
  const { isText, ...rest } = head;
  return { ...rest, body: Buffer.from(text.slice(end + 1), isText ? 'utf8' : 'base64') };
}

type Head = Omit<Answer, 'body'> & { readonly isText: boolean };

const KINDS: Readonly<Record<keyof Head, string>> = {
  status: 'number',
  lines: 'string',
  isAscii: 'boolean',
  contentLength: 'number',
  hasBody: 'boolean',
  isText: 'boolean',
};

function isHead(value: unknown): value is Head {
  if (typeof value !== 'object' || value === null) return false;
  const found = value as Record<string, unknown>;
  return Object.entries(KINDS).every(([name, kind]) => typeof found[name] === kind);
}
