import { readFileSync } from 'node:fs';
import path from 'node:path';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { MAX_DOCUMENT_BYTES } from '../../../src/catalog/openapi-import/importer.ts';
import { MAX_OPERATIONS, MAX_OPERATIONS_LENGTH, storeOperations } from '../../../src/catalog/operations/operation.ts';
import { importHere } from './support.ts';

// Documents of real APIs, as packages of the lockfile have them. None is copied.

const REDOCLY = 'openapi-typescript/node_modules/@redocly/openapi-core/src/benchmark/benches';
const FITTING = [
  '@readme/oas-examples/3.0/json/star-trek.json',
  '@readme/oas-examples/3.0/yaml/star-trek.yaml',
  '@readme/oas-examples/3.0/yaml/http-status-codes.yaml',
  '@readme/oas-examples/3.1/json/readme.json',
  '@readme/oas-examples/3.1/yaml/readme.yaml',
  '@figma/rest-api-spec/openapi/openapi.yaml',
] as const;
const TOO_MANY = [
  '@gitbook/api/spec/openapi.json',
  '@gitbook/api/spec/openapi.yaml',
  `${REDOCLY}/rebilly.yaml`,
] as const;

/** Their authors have left faults in them, which the official schema of OpenAPI 3.0 finds. */
const FAULTY = [
  ['@directus/specs/dist/openapi.json', /^paths\/~1items~1\{collection\}\/post\/.*: must be object\.$/],
  ['gitbook-api-0/spec/openapi.yaml', /^components\/schemas\/IntegrationSearchQuery: .*\(name\)\.$/],
] as const;

const textOf = (file: string): string => readFileSync(path.join('node_modules', file), 'utf8');
type Doc = { readonly paths: Record<string, Record<string, { readonly tags?: string[] } | undefined>> };
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** What the document has, read in another way than the import reads it. */
function operationsIn(text: string): { readonly tags?: string[] }[] {
  const { paths } = load(text, { maxAliases: -1 }) as Doc;
  return Object.values(paths).flatMap((item) => METHODS.flatMap((method) => item[method] ?? []));
}

async function imported(text: string, tag: string | null = null) {
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_DOCUMENT_BYTES);
  const found = await importHere(text, { tag });
  const { json } = storeOperations(found.operations) as { json: string };
  expect(json.length).toBeLessThanOrEqual(MAX_OPERATIONS_LENGTH);
  return found;
}

describe('an OpenAPI document of a real API', () => {
  it.each(FITTING)('is imported, operation by operation: %s', async (file) => {
    const text = textOf(file);
    const all = operationsIn(text);
    expect(all.length).toBeGreaterThanOrEqual(50);
    const { operations, skipped } = await imported(text);
    const known = skipped.filter(({ method }) => METHODS.includes(method.toLowerCase()));
    expect(operations.length + known.length).toBe(all.length);
    expect(operations.length).toBeGreaterThan(0.9 * all.length);
  });

  it.each(TOO_MANY)('can be filtered by tag if it has more operations than a listing may have: %s', async (file) => {
    const text = textOf(file);
    const all = operationsIn(text);
    expect(all.length).toBeGreaterThan(MAX_OPERATIONS);
    const { operations, skipped, tags } = await imported(text);
    expect(operations).toHaveLength(MAX_OPERATIONS);
    expect(skipped.at(-1)?.reason).toContain('choose operations with ?tag=');
    const [first] = tags;
    if (first === undefined) throw new Error('the document has no tags');
    const wanted = all.filter((operation) => operation.tags?.includes(first.tag)).length;
    expect(first.operations).toBe(wanted);
    const chosen = await imported(text, first.tag);
    expect(chosen.operations.length + chosen.skipped.length).toBeGreaterThanOrEqual(wanted);
    expect(chosen.operations.length).toBeLessThanOrEqual(wanted);
  });

  it.each(FAULTY)('with a fault is refused, and the error names where the fault is: %s', async (file, fault) => {
    await expect(importHere(textOf(file))).rejects.toThrow(fault);
  });

  it('gives the same result in YAML as in JSON', async () => {
    const [json, yaml] = await Promise.all([imported(textOf(FITTING[3])), imported(textOf(FITTING[4]))]);
    expect(yaml.operations).toEqual(json.operations);
  });
});
