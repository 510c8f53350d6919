import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ImporterBusy, OpenApiImporter } from '../../../src/catalog/openapi-import/importer.ts';
import { buildSources, importWorker } from '../../support/build.ts';
import { answering, bytesOf, documentOf, LISTING } from './support.ts';

const importer = new OpenApiImporter({ workerFile: importWorker, deadlineMs: 20_000 });
beforeAll(() => void importWorker());

const importing = (document: unknown, by = importer) => by.import(bytesOf(document), LISTING);

/** OpenAPI 3.0 demands that tags differ, and to compare 60 000 objects with each other takes the validator minutes. */
const slow = documentOf({}, { openapi: '3.0.0', tags: Array.from({ length: 60_000 }, (_, i) => ({ name: `t${i}` })) });

describe('a document with external references', () => {
  let server: Server;
  let asked = 0;
  beforeAll(async () => {
    server = createServer((_, response) => {
      asked++;
      response.end(JSON.stringify({ type: 'string', title: 'stolen' }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => server.close());

  it('makes the gateway neither send a request nor read a file', async () => {
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const places = [
      `http://${host}/a.json`,
      `//${host}/a`,
      `http://${host}/a.json#/x`,
      'file:///etc/passwd',
      '/etc/passwd',
      '../package.json',
    ];
    // Each reference wherever OpenAPI knows one, and where JSON Schema gives an address to a schema.
    const items = places.flatMap((place, i) => [
      [`/schema${i}`, { get: answering({ $ref: place, $id: place, $schema: place, $dynamicRef: place }) }],
      [`/response${i}`, { get: { responses: { 200: { $ref: place } } } }],
      [`/parameter${i}`, { get: answering({}, { parameters: [{ $ref: place }], requestBody: { $ref: place } }) }],
      [
        `/example${i}`,
        {
          get: {
            responses: {
              200: {
                description: '',
                content: { 'application/json': { examples: { a: { $ref: place }, b: { externalValue: place } } } },
              },
            },
          },
        },
      ],
      [`/item${i}`, { $ref: place }],
    ]);
    const { operations, skipped, changed } = await importing(
      documentOf(Object.fromEntries(items), { jsonSchemaDialect: places[0], externalDocs: { url: places[0] } }),
    );
    expect(asked).toBe(0);
    expect(operations).toHaveLength(places.length * 4);
    expect(skipped.map(({ path }) => path)).toEqual(places.map((_, i) => `/item${i}`));
    expect(new Set(changed.map(({ path }) => path)).size).toBe(places.length * 3);
    expect(JSON.stringify(operations)).not.toMatch(/root:|stolen|tollgate/);
  });
});

/** Resolves when this process has used this much CPU from now on, with how often the event loop turned meanwhile. */
function turnsWhileBusy(cpuMs: number): Promise<number> {
  const before = process.cpuUsage();
  let turns = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      turns++;
      if (process.cpuUsage(before).user < cpuMs * 1_000) return;
      clearInterval(timer);
      resolve(turns);
    }, 5);
  });
}

describe('a document that takes too long', () => {
  afterEach(() => void vi.useRealTimers());

  it('is refused at the deadline while the event loop continues, and the next document is read', async () => {
    // The deadline comes when the thread is in the middle of its work, however slow the machine is.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const usual = new OpenApiImporter({ workerFile: importWorker });
    const late = expect(importing(slow, usual)).rejects.toThrow(/could not be read within 4 s/);
    await expect(importing(documentOf({}), usual)).rejects.toThrow(ImporterBusy);
    expect(await turnsWhileBusy(1_000)).toBeGreaterThan(10);
    vi.advanceTimersByTime(3_999);
    await expect(importing(documentOf({}), usual)).rejects.toThrow(ImporterBusy);
    vi.advanceTimersByTime(1);
    await late;
    // With a stopped clock no deadline comes.
    expect(await importing(documentOf({ '/a': { get: answering({}) } }), usual)).toMatchObject({
      operations: [{ path: '/a' }],
    });
  });
});

it('the compiled program finds its worker thread file', async () => {
  const compiled = await import(path.join(buildSources(), 'catalog/openapi-import/importer.js'));
  const read = await importing(
    documentOf({ '/a': { get: answering({}) } }),
    new compiled.OpenApiImporter({ deadlineMs: 20_000 }),
  );
  expect(read.operations).toHaveLength(1);
});
