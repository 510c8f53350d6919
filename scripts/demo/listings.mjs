// @ts-check
// What the demo provider sells. `service` is the first segment of the path in service.mjs. `tryPath` is appended to the proxy
// path of the listing to make the call that is printed.

/**
 * @typedef {object} DemoListing
 * @property {string} service
 * @property {string} tryPath
 * @property {{ name: string, description: string, price: number, category: string, free_calls?: number,
 *   timeout_seconds?: number }} listing as POST /services takes it, without the endpoint
 */

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
    },
  },
  {
    service: 'chat',
    tryPath: 'v1/chat/completions',
    listing: {
      name: 'Parrot',
      description:
        'A pretend language model that repeats what it is told. Speaks as OpenAI (POST v1/chat/completions) and Anthropic (POST v1/messages) do, with "stream": true too.',
      price: 0.004,
      category: 'models',
    },
  },
];

/** @param {string} name of a listing @param {number} port of the demo service */
export function endpointOf(name, port) {
  const found = demoListings.find(({ listing }) => listing.name === name);
  return found === undefined ? null : `http://127.0.0.1:${port}/${found.service}`;
}
