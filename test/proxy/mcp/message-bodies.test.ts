import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiError } from '../../../src/errors.ts';
import type { HttpServer } from '../../../src/http/server.ts';
import { MessageBodies } from '../../../src/proxy/mcp/message-bodies.ts';
import { newServer } from '../../http/test-server.ts';
import { RawCaller } from '../../integration/raw-caller.ts';
import { until } from '../../support/wait.ts';

const MAX_MESSAGE = 100_000;

let server: HttpServer;
let baseUrl: string;
const bodies = new MessageBodies({ maxMessageBytes: MAX_MESSAGE, maxBytesBeingRead: 250_000, maxReadMs: 400 });
/** For the requests to `/patient`, which never reach their time limit. */
const patient = new MessageBodies({ maxMessageBytes: MAX_MESSAGE, maxBytesBeingRead: 250_000, maxReadMs: 60_000 });
/** What was read, as `path length`. */
const read: string[] = [];

beforeAll(async () => {
  server = newServer({
    onCall: (head, stream) => {
      (head.path === '/patient' ? patient : bodies).read(head, stream, {
        onBody: (bytes) => {
          read.push(`${head.path} ${bytes === null ? 'none' : bytes.length}`);
          stream.respond(200, '', bytes === null ? 'none' : Buffer.from(bytes).subarray(-3));
        },
        onNoBody: (error) => {
          const { status, code } = error as ApiError;
          stream.respond(status, '', code);
        },
      });
    },
  });
  baseUrl = `http://127.0.0.1:${await server.listen()}`;
});
afterAll(() => server.close());

/** Sends a head with a length, and as much of the body. */
async function send(
  line: string,
  length: number | 'chunked',
  body = '',
  type = 'application/json',
  accept = 'application/json, text/event-stream',
): Promise<RawCaller> {
  const caller = await RawCaller.connect(baseUrl);
  const framing = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`;
  const head = `Host: gateway.test\r\nAccept: ${accept}\r\nContent-Type: ${type}\r\n${framing}`;
  caller.send(`${line} HTTP/1.1\r\n${head}\r\n\r\n${body}`);
  return caller;
}

async function answerOf(caller: RawCaller): Promise<[status: number, body: string]> {
  const { status, body } = await caller.response();
  caller.destroy();
  return [status, body.toString()];
}

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

describe('a message for an MCP server', () => {
  it('is read completely, in one piece or many, with a length or in chunks', async () => {
    expect(await answerOf(await send('POST /one', 6, '{"a":1'))).toEqual([200, '":1']);
    const pieces = await send('POST /many', MAX_MESSAGE, 'x'.repeat(60_000));
    pieces.send(`${'y'.repeat(39_997)}end`);
    expect(await answerOf(pieces)).toEqual([200, 'end']);
    const chunks = await send('POST /chunks', 'chunked', chunk('x'.repeat(50_000)));
    chunks.send(`${chunk('end')}0\r\n\r\n`);
    expect(await answerOf(chunks)).toEqual([200, 'end']);
    const bytes = await send('POST /bytes', 'chunked', chunk('x').repeat(20_000));
    bytes.send(`${chunk('end')}0\r\n\r\n`);
    expect(await answerOf(bytes)).toEqual([200, 'end']);
    expect(read).toEqual(['/one 6', `/many ${MAX_MESSAGE}`, '/chunks 50003', '/bytes 20003']);
  });

  it('is not waited for when its head is enough to refuse it: by length, type or method', async () => {
    expect(await answerOf(await send('POST /', 100, '', 'text/plain'))).toEqual([400, 'invalid_request']);
    for (const accept of ['application/json', '*/*', 'text/event-stream, application/jsonl', 'application/*, text/*'])
      expect(await answerOf(await send('POST /', 100, '', undefined, accept))).toEqual([406, 'not_acceptable']);
    expect(await answerOf(await send('POST /', MAX_MESSAGE + 1))).toEqual([413, 'payload_too_large']);
    expect(await answerOf(await send('POST /', 0))).toEqual([400, 'invalid_json']);
    expect(await answerOf(await send('PUT /', 100))).toEqual([405, 'method_not_allowed']);
    expect(await answerOf(await send('PATCH /', 'chunked'))).toEqual([405, 'method_not_allowed']);
    expect(await answerOf(await send('GET /', 100))).toEqual([400, 'invalid_request']);
    expect(await answerOf(await send('DELETE /', 'chunked'))).toEqual([400, 'invalid_request']);
  });

  it('is not needed to open an event stream or to end a session', async () => {
    expect(await answerOf(await send('GET /', 0))).toEqual([200, 'none']);
    expect(await answerOf(await send('DELETE /', 0))).toEqual([200, 'none']);
    expect(await answerOf(await send('GET /?_method=POST', 0))).toEqual([400, 'invalid_request']);
    const asCall = 'application/json\r\nMcp-Method: tools/call\r\nMcp-Name: dear';
    expect(await answerOf(await send('GET /', 0, '', asCall))).toEqual([400, 'invalid_request']);
    expect(await answerOf(await send('DELETE /', 0, '', asCall))).toEqual([400, 'invalid_request']);
  });

  it('is refused when its chunks exceed the bound in total', async () => {
    const caller = await send('POST /', 'chunked', chunk('x'.repeat(MAX_MESSAGE)));
    caller.send(chunk('x'));
    expect(await answerOf(caller)).toEqual([413, 'payload_too_large']);
  });

  it('is refused when it takes too long to arrive, and its bytes are freed', async () => {
    for (let i = 0; i < 2; i++) {
      const slow = await Promise.all([
        send('POST /', 95_000, 'x'.repeat(90_000)),
        send('POST /', 95_000, 'x'.repeat(90_000)),
      ]);
      expect(await Promise.all(slow.map(answerOf))).toEqual(Array(2).fill([408, 'body_too_slow']));
    }
  });

  it('displaces the oldest unfinished message, so that nobody can keep others out with messages that never end', async () => {
    const fill = () => send('POST /patient', 95_000, 'x'.repeat(90_000));
    const end = `${'x'.repeat(4_997)}end`;
    const oldest = await fill();
    await until(() => patient.bytesBeingRead >= 90_000);
    const older = await fill();
    await until(() => patient.bytesBeingRead >= 180_000);
    const newest = await fill();
    expect(await answerOf(oldest)).toEqual([503, 'unavailable']);
    const small = await send('POST /patient', 3, 'one');
    expect(await answerOf(small)).toEqual([200, 'one']);
    newest.send(end);
    expect(await answerOf(newest)).toEqual([200, 'end']);
    older.send(end);
    expect(await answerOf(older)).toEqual([200, 'end']);
    expect(patient.bytesBeingRead).toBe(0);
  });

  it('frees its bytes when its caller leaves', async () => {
    const caller = await send('POST /patient', 95_000, 'x'.repeat(90_000));
    await until(() => patient.bytesBeingRead >= 90_000);
    caller.destroy();
    await until(() => patient.bytesBeingRead === 0);
  });
});
