// A second opinion on where requests end: a reader of our own that accepts only what RFC 9112 allows to the letter.

export type StrictRequest = {
  readonly method: string;
  readonly target: string;
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** The bytes of the whole request on the wire. */
  readonly raw: Buffer;
};

type StrictReading = {
  readonly requests: readonly StrictRequest[];
  /** The bytes after the last whole request: none, or the beginning of a request that was cut. */
  readonly rest: Buffer;
};

const REQUEST_LINE = /^([A-Z]+) (\/[\x21-\x7e\x80-\xff]*) HTTP\/1\.1$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a field value must not contain these (RFC 9110 §5.5)
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*$/;

/** Reads the requests of one connection. Throws at the first octet that is not allowed. */
export function readStrictly(bytes: Buffer): StrictReading {
  const requests: StrictRequest[] = [];
  let at = 0;
  for (;;) {
    const request = readOne(bytes, at);
    if (request === null) return { requests, rest: bytes.subarray(at) };
    requests.push(request);
    at += request.raw.length;
  }
}

function readOne(bytes: Buffer, start: number): StrictRequest | null {
  const headEnd = bytes.indexOf('\r\n\r\n', start, 'latin1');
  if (headEnd < 0) return null;
  const [line = '', ...lines] = bytes.toString('latin1', start, headEnd).split('\r\n');
  const [, method, target] = REQUEST_LINE.exec(line) ?? fail(`not a request line: ${JSON.stringify(line)}`);
  const headers = lines.map((text): [string, string] => {
    const [, name = '', value = ''] = FIELD.exec(text) ?? fail(`not a field: ${JSON.stringify(text)}`);
    return [name.toLowerCase(), value];
  });
  const valuesOf = (name: string): string[] => headers.filter(([known]) => known === name).map(([, value]) => value);
  const [lengths, codings] = [valuesOf('content-length'), valuesOf('transfer-encoding')];
  if (lengths.length + codings.length > 1) fail(`framed twice: ${JSON.stringify(headers)}`);
  if (valuesOf('host').length !== 1) fail('not exactly one host');
  const body =
    codings.length > 0
      ? readChunks(bytes, headEnd + 4, codings[0] as string)
      : readLength(bytes, headEnd + 4, lengths[0]);
  if (body === null) return null;
  return {
    method: method as string,
    target: target as string,
    headers,
    body: body.text,
    raw: bytes.subarray(start, body.end),
  };
}

type Body = { readonly text: string; readonly end: number };

function readLength(bytes: Buffer, start: number, value: string | undefined): Body | null {
  if (value !== undefined && !/^\d{1,15}$/.test(value)) fail(`not a length: ${value}`);
  const end = start + Number(value ?? 0);
  return end > bytes.length ? null : { text: bytes.toString('latin1', start, end), end };
}

function readChunks(bytes: Buffer, start: number, coding: string): Body | null {
  if (coding !== 'chunked') fail(`not chunked: ${coding}`);
  let text = '';
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at, 'latin1');
    if (lineEnd < 0) return null;
    const line = bytes.toString('latin1', at, lineEnd);
    if (!/^[0-9a-f]{1,8}$/i.test(line)) fail(`not a chunk size: ${JSON.stringify(line)}`);
    const size = Number.parseInt(line, 16);
    const end = lineEnd + 2 + size + 2;
    if (end > bytes.length) return null;
    if (bytes.toString('latin1', end - 2, end) !== '\r\n') fail('a chunk does not end where it says');
    if (size === 0) return { text, end };
    text += bytes.toString('latin1', lineEnd + 2, end - 2);
    at = end;
  }
}

function fail(reason: string): never {
  throw new Error(reason);
}
