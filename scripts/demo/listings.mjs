// @ts-check
// What the demo provider sells. `service` is the first segment of the path in service.mjs. `tryPath` is appended to the proxy
// path of the listing to make the call that is printed: each is a call of the listing's first operation.

/**
 * @typedef {object} DemoListing
 * @property {string} service
 * @property {string} tryPath
 * @property {{ name: string, description: string, price: number, max_price?: number, category: string, free_calls?: number,
 *   timeout_seconds?: number, operations: Operation[] }} listing as POST /services takes it, without the endpoint
 *
 * @typedef {{ method: string, path: string, summary: string, price?: number, input?: object, output?: object,
 *   example?: object }} Operation
 */

const integer = (/** @type {string} */ description) => ({ type: 'integer', description });

/** @type {Operation} */
const echoOperation = {
  method: 'GET',
  path: '/*',
  summary: 'Answers with the request as the service received it',
  output: {
    type: 'object',
    properties: {
      method: { type: 'string' },
      path: { type: 'string' },
      query: { type: 'object' },
      headers: { type: 'object' },
      body: { type: 'string' },
    },
  },
  example: { query: { x: '1' } },
};
/** @type {Operation} */
const echoBody = { ...echoOperation, method: 'POST', summary: 'The same with a body', example: { body: 'hello' } };
const statistics = {
  type: 'object',
  properties: { characters: { type: 'integer' }, words: { type: 'integer' }, lines: { type: 'integer' } },
};

/** @param {string[]} required fields of the body */
const chatInput = (required) => ({
  type: 'object',
  properties: {
    body: {
      type: 'object',
      required,
      properties: {
        model: { type: 'string', description: 'Any name' },
        max_tokens: { type: 'integer' },
        messages: { type: 'array', minItems: 1, items: { type: 'object', required: ['role', 'content'] } },
        stream: { type: 'boolean', description: 'true: the answer comes as server-sent events' },
      },
    },
  },
});

/** @type {Operation[]} */
const chatOperations = [
  {
    method: 'POST',
    path: '/v1/chat/completions',
    summary: "Answers as OpenAI's chat completions do",
    input: chatInput(['model', 'messages']),
    output: { type: 'object', properties: { choices: { type: 'array', items: { type: 'object' } } } },
    example: {
      body: { model: 'parrot', messages: [{ role: 'user', content: 'Hello' }] },
      response: { choices: [{ index: 0, message: { role: 'assistant', content: 'You said: Hello' } }] },
    },
  },
  {
    method: 'POST',
    path: '/v1/messages',
    summary: "Answers as Anthropic's messages do",
    input: chatInput(['model', 'max_tokens', 'messages']),
    output: { type: 'object', properties: { content: { type: 'array', items: { type: 'object' } } } },
    example: {
      body: { model: 'parrot', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] },
      response: { content: [{ type: 'text', text: 'You said: Hello' }] },
    },
  },
];

/** @type {DemoListing[]} */
export const demoListings = [
  {
    service: 'echo',
    tryPath: 'hello?x=1',
    listing: {
      name: 'Echo',
      description: 'Answers with what it received: method, path, query, headers and body. Free.',
      price: 0,
      category: 'tools',
      operations: [echoOperation, echoBody],
    },
  },
  {
    service: 'echo',
    tryPath: 'hello?x=1',
    listing: {
      name: 'Echo Plus',
      description: 'The same echo, paid after 100 free calls.',
      price: 0.002,
      free_calls: 100,
      category: 'tools',
      operations: [echoOperation, echoBody],
    },
  },
  {
    service: 'text',
    tryPath: '?text=Hello%20agents',
    listing: {
      name: 'Text Statistics',
      description: 'Counts characters, words and lines of the request body (POST) or of ?text= (GET).',
      price: 0.003,
      category: 'text',
      operations: [
        {
          method: 'GET',
          path: '/',
          summary: 'Counts the text in ?text=',
          input: {
            type: 'object',
            properties: { query: { type: 'object', properties: { text: { type: 'string' } } } },
          },
          output: statistics,
          example: { query: { text: 'Hello agents' }, response: { characters: 12, words: 2, lines: 1 } },
        },
        {
          method: 'POST',
          path: '/',
          summary: 'Counts the text in the body',
          input: { type: 'object', properties: { body: { type: 'string' } } },
          output: statistics,
          example: { body: 'Hello agents', response: { characters: 12, words: 2, lines: 1 } },
        },
      ],
    },
  },
  {
    service: 'events',
    tryPath: '?events=5&interval_ms=500',
    listing: {
      name: 'Event Stream',
      description: 'Server-sent events. ?events= sets their number (5), ?interval_ms= the time between two (500).',
      price: 0.005,
      category: 'streams',
      operations: [
        {
          method: 'GET',
          path: '/',
          summary: 'Sends server-sent events, and then the event "done"',
          input: {
            type: 'object',
            properties: {
              query: {
                type: 'object',
                properties: {
                  events: integer('How many, at most 1000; default 5'),
                  interval_ms: integer('Time between two, at most 10000; default 500'),
                },
              },
            },
          },
          example: {
            query: { events: 5, interval_ms: 500 },
            response: 'event: tick\nid: 1\ndata: {"number":1,"of":5}\n\n',
          },
        },
      ],
    },
  },
  {
    service: 'slow',
    tryPath: '?ms=1500',
    listing: {
      name: 'Slow Answer',
      description: 'Answers after ?ms= milliseconds (2000, at most 20000).',
      price: 0.001,
      category: 'testing',
      timeout_seconds: 30,
      operations: [
        {
          method: 'GET',
          path: '/',
          summary: 'Answers after ?ms= milliseconds',
          input: {
            type: 'object',
            properties: {
              query: { type: 'object', properties: { ms: integer('At most 20000; default 2000') } },
            },
          },
          output: { type: 'object', properties: { waited_ms: { type: 'integer' } } },
          example: { query: { ms: 1500 }, response: { waited_ms: 1500 } },
        },
      ],
    },
  },
  {
    service: 'flaky',
    tryPath: '',
    listing: {
      name: 'Flaky',
      description: 'Every other call fails with a 500, and the gateway refunds it.',
      price: 0.01,
      category: 'testing',
      operations: [
        {
          method: 'GET',
          path: '/',
          summary: 'Works, then fails, then works again',
          output: { type: 'object', properties: { call: { type: 'integer' }, outcome: { type: 'string' } } },
          example: { response: { call: 1, outcome: 'this one works' } },
        },
      ],
    },
  },
  {
    service: 'chat',
    tryPath: 'v1/chat/completions',
    listing: {
      name: 'Parrot',
      description:
        'A pretend language model that repeats what it is told. Speaks as OpenAI (v1/chat/completions) and Anthropic (v1/messages) do.',
      price: 0.004,
      category: 'models',
      operations: chatOperations,
    },
  },
  {
    service: 'tokens',
    tryPath: 'v1/chat/completions',
    listing: {
      name: 'Parrot by the Token',
      description: 'The same parrot, for $0.00002 a token of its answer.',
      price: 0.0001,
      max_price: 0.01,
      category: 'models',
      operations: chatOperations,
    },
  },
  {
    service: 'seconds',
    tryPath: '?seconds=0.5',
    listing: {
      name: 'Prime Search',
      description: 'Searches for prime numbers for ?seconds= (1), for $0.01 a second.',
      price: 0.001,
      max_price: 0.05,
      category: 'testing',
      operations: [
        {
          method: 'GET',
          path: '/',
          summary: 'Searches for as long as is asked and paid for',
          input: {
            type: 'object',
            properties: { query: { type: 'object', properties: { seconds: { type: 'number' } } } },
          },
          output: { type: 'object', properties: { prime: { type: 'integer' }, seconds: { type: 'number' } } },
          example: { query: { seconds: 0.5 }, response: { prime: 2000003, seconds: 0.5 } },
        },
      ],
    },
  },
];

/** @param {string} name of a listing @param {number} port of the demo service */
export function endpointOf(name, port) {
  const found = demoListings.find(({ listing }) => listing.name === name);
  return found === undefined ? null : `http://127.0.0.1:${port}/${found.service}`;
}
