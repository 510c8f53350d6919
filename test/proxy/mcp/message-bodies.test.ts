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
/** Of the requests for `/patient`, which never come to their bound of time. */
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
): Promise<RawCaller> {
  const caller = await RawCaller.connect(baseUrl);
  const framing = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`;
  caller.send(`${line} HTTP/1.1\r\nHost: gateway.test\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n${body}`);
  return caller;
}

async function answerOf(caller: RawCaller): Promise<[status: number, body: string]> {
  const { status, body } = await caller.response();
  caller.destroy();
  return [status, body.toString()];
}

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

describe('a message for an MCP server', () => {
  it('is read whole, in one piece or many, with a length or in chunks', async () => {
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

  it('is not waited for when its head is enough to refuse it: its length, its type, its method', async () => {
    expect(await answerOf(await send('POST /', 100, '', 'text/plain'))).toEqual([400, 'invalid_request']);
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
  });

  it('is refused when its chunks come to more than the bound', async () => {
    const caller = await send('POST /', 'chunked', chunk('x'.repeat(MAX_MESSAGE)));
    caller.send(chunk('x'));
    expect(await answerOf(caller)).toEqual([413, 'payload_too_large']);
  });

  it('is refused when it takes too long to arrive, and its bytes are given back', async () => {
    for (let i = 0; i < 2; i++) {
      const slow = await Promise.all([
        send('POST /', 95_000, 'x'.repeat(90_000)),
        send('POST /', 95_000, 'x'.repeat(90_000)),
      ]);
      expect(await Promise.all(slow.map(answerOf))).toEqual(Array(2).fill([408, 'body_too_slow']));
    }
  });

  it('is refused while others have filled the bound of all messages, until one of them is done or its caller leaves', async () => {
    const fill = () => send('POST /patient', 95_000, 'x'.repeat(90_000));
    const [first, second] = [await fill(), await fill()];
    const refused = async (): Promise<boolean> => {
      const caller = await fill();
      // The answer comes at once, or the message is waited for.
      const answer = await Promise.race([answerOf(caller), waiting(caller)]);
      caller.destroy();
      return answer !== null;
    };
    await until(refused);
    const small = await send('POST /patient', 3, 'one');
    expect(await answerOf(small)).toEqual([200, 'one']);
    first.destroy();
    await until(async () => !(await refused()));
    second.send(`${'x'.repeat(4_997)}end`);
    expect(await answerOf(second)).toEqual([200, 'end']);
  });
});

/** Null when the server has answered a later request on another connection, and has not answered this one. */
async function waiting(caller: RawCaller): Promise<null> {
  for (let i = 0; i < 20; i++) await answerOf(await send('GET /', 0));
  if (caller.received.length > 0) await new Promise(() => {});
  return null;
}
