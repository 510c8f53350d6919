// Holds responses against the OpenAPI document: status, headers and body. And keeps a list of what was seen.

import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js';

type Json = Record<string, unknown>;
type Media = {
  readonly schema?: Json;
  readonly example?: unknown;
  readonly examples?: Record<string, { value: unknown }>;
};
type Header = { readonly required?: boolean; readonly schema: Json; readonly example?: unknown };
type ResponseObject = {
  readonly description: string;
  readonly headers: Record<string, Header>;
  readonly content?: Record<string, Media>;
};
export type Operation = {
  readonly operationId: string;
  readonly method: string;
  /** `/api/v1/keys/{key_id}` */
  readonly template: string;
  readonly parameters: readonly { name: string; in: string; description: string }[];
  readonly body: unknown;
  /** By status, or `default`. References are resolved. */
  readonly responses: Record<string, ResponseObject>;
};
export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
};

/** Headers of HTTP itself, which the document does not describe, and the mark of the HTTP server. */
const PLUMBING = new Set([
  'connection',
  'content-length',
  'content-type',
  'date',
  'keep-alive',
  'transfer-encoding',
  'uwebsockets',
]);

export class Contract {
  readonly operations: readonly Operation[];
  /** 'getKeys 200', 'getKeys 400 invalid_request' */
  readonly seen = new Set<string>();
  readonly #document: Json;
  readonly #ajv: Ajv2020;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: Json) {
    this.#document = document;
    this.#ajv = strictAjv(document);
    this.operations = Object.entries(document.paths as Record<string, Record<string, Json>>).flatMap(
      ([template, methods]) =>
        Object.entries(methods).map(([method, operation]) =>
          this.#operation(template, method.toUpperCase(), operation),
        ),
    );
  }

  operation(operationId: string): Operation {
    const found = this.operations.find((operation) => operation.operationId === operationId);
    if (found === undefined) throw new Error(`the document has no operation ${operationId}`);
    return found;
  }

  /** Error codes by operation: the examples of a response name its codes. */
  errorCodes({ responses }: Operation): string[] {
    return Object.values(responses).flatMap(({ content }) =>
      Object.keys(content?.['application/json']?.examples ?? {}),
    );
  }

  /** Throws if the response is not as the document says. */
  check(operation: Operation, answer: Answer): void {
    const faults = this.faults(operation, answer);
    const name = `${operation.operationId} ${answer.status}`;
    if (faults.length > 0) throw new Error(`${name}\n  ${faults.join('\n  ')}\n  ${answer.body.slice(0, 500)}`);
    this.seen.add(name);
    const { error } = (parsed(answer.body) ?? {}) as { error?: unknown };
    if (typeof error === 'string') this.seen.add(`${name} ${error}`);
  }

  /** @returns in which way the response differs from the document */
  faults({ method, responses }: Operation, { status, headers, body }: Answer): string[] {
    const response = responses[status] ?? responses.default;
    if (response === undefined) return [`status ${status} is not described`];
    const faults = this.#headerFaults(response.headers, headers);
    if (method === 'HEAD' || response.content === undefined) {
      return body === '' ? faults : [...faults, 'has a body, but none is described'];
    }
    const type = String(headers['content-type'] ?? '').split(';')[0] ?? '';
    const media = response.content[type] ?? response.content['*/*'];
    if (media === undefined) return [...faults, `Content-Type ${type} is not described`];
    const value = type === 'application/json' ? parsed(body) : body;
    return [...faults, ...this.schemaFaults(media.schema as Json, value), ...this.#codeFaults(media, value)];
  }

  schemaFaults(schema: Json, value: unknown): string[] {
    const key = JSON.stringify(schema);
    const validate = this.#validators.get(key) ?? this.#ajv.compile(closed(schema) as AnySchemaObject);
    this.#validators.set(key, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `body${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }

  /** An error of the gateway must be one of the codes that the response has an example of, and look as the schema of that code says. */
  #codeFaults({ examples }: Media, value: unknown): string[] {
    const { error } = (value ?? {}) as { error?: unknown };
    if (examples === undefined || typeof error !== 'string') return [];
    if (!(error in examples)) return [`the error ${error} is not described`];
    const name = error.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
    return this.schemaFaults({ $ref: `#/components/schemas/${name}Error` }, value);
  }

  #headerFaults(described: Record<string, Header>, headers: Answer['headers']): string[] {
    const byName = new Map(Object.entries(described).map(([name, header]) => [name.toLowerCase(), header]));
    const faults: string[] = [];
    for (const [name, { required, schema }] of byName) {
      const value = headers[name];
      if (value === undefined) {
        if (required) faults.push(`header ${name} is missing`);
        continue;
      }
      // Node has a list of `Set-Cookie`.
      const text = [value].flat().join(', ');
      const typed = schema.type === 'integer' ? Number(text) : text;
      faults.push(...this.schemaFaults(schema, typed).map((fault) => `header ${name}: ${fault}`));
    }
    const unknown = Object.keys(headers).filter((name) => !byName.has(name) && !PLUMBING.has(name));
    return [...faults, ...unknown.map((name) => `header ${name} is not described`)];
  }

  #operation(template: string, method: string, operation: Json): Operation {
    const body = operation.requestBody as { content?: Record<string, Media> } | undefined;
    return {
      operationId: operation.operationId as string,
      method,
      template,
      parameters: operation.parameters as Operation['parameters'],
      body: body?.content?.['application/json']?.example,
      responses: this.#resolved(operation.responses) as Operation['responses'],
    };
  }

  /** Follows references to responses and headers. Those to schemas are left to ajv. */
  #resolved(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.#resolved(each));
    const { $ref } = value as { $ref?: string };
    if ($ref?.startsWith('#/components/schemas/')) return value;
    if ($ref !== undefined) {
      const target = $ref
        .slice(2)
        .split('/')
        .reduce<unknown>((at, step) => (at as Json)[step], this.#document);
      return this.#resolved(target);
    }
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#resolved(each)]));
  }
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const FORMATS: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/,
  date: /^\d{4}-\d\d-\d\d$/,
  uri: /^https?:\/\//,
  'uri-reference': /^\/|^https?:/,
};

function strictAjv(document: Json): Ajv2020 {
  // What is compiled runs a few times, so to optimise it would take longer than it saves.
  const code = { optimize: false };
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, strictRequired: false, code });
  for (const [name, format] of Object.entries(FORMATS)) ajv.addFormat(name, format);
  const { schemas } = document.components as { schemas: Record<string, Json> };
  for (const [name, schema] of Object.entries(schemas)) {
    // `Error` is the common part of all errors, which have fields of their own.
    ajv.addSchema((name === 'Error' ? rewritten(schema) : closed(schema)) as AnySchemaObject, name);
  }
  return ajv;
}

/**
 * The schema without room for fields that it does not name. The document leaves that room, because later versions add fields; a
 * response of this version must not use it.
 */
function closed(schema: Json, isPart = false): Json {
  const whole = rewritten(schema);
  if (isPart) return whole;
  if ('allOf' in whole) return { ...whole, unevaluatedProperties: false };
  return 'properties' in whole && !('additionalProperties' in whole)
    ? { ...whole, additionalProperties: false }
    : whole;
}

/** With references to `#/components/schemas/Key` as references to `Key`, and with the schemas inside closed. */
function rewritten(schema: Json): Json {
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]): [string, unknown] => {
      if (keyword === '$ref') return [keyword, String(value).replace('#/components/schemas/', '')];
      if (keyword === 'allOf') return [keyword, (value as Json[]).map((each) => closed(each, true))];
      if (keyword === 'anyOf') return [keyword, (value as Json[]).map((each) => closed(each))];
      if (keyword === 'items') return [keyword, closed(value as Json)];
      if (keyword !== 'properties') return [keyword, value];
      const entries = Object.entries(value as Record<string, Json>);
      return [keyword, Object.fromEntries(entries.map(([name, each]) => [name, closed(each)]))];
    }),
  );
}
