// The form's input, and the request made from it. Tested by test/web/try-form.test.ts.

import type { components } from '../api/schema.d.ts';
import type { CallRequest } from '../calls/send.ts';
import { type Cost, isByUse, mostOf } from '../cost.ts';
import { type Json, jsonText, parsed, wellFormed } from './service-quote.ts';
import {
  bodyOf,
  hasDotSegment,
  mediaTypeOf,
  type Operation,
  objectOf,
  type Pair,
  parametersOf,
  pathNames,
  pathOf,
  queryOf,
} from './service-request.ts';
import { type Sample, shortened } from './service-snippets.ts';

type Service = components['schemas']['CallableService'];

export type TryForm = {
  readonly method: string;
  /** A template, or for a listing without operations the path as typed. */
  readonly path: string;
  readonly values: Readonly<Record<string, string>>;
  readonly query: readonly (Pair & { readonly isDeclared: boolean; readonly required: boolean })[];
  readonly headers: readonly Pair[];
  readonly body: string;
  /** Credentials that the service asks its callers for, by header. */
  readonly credentials: Readonly<Record<string, string>>;
};

export const TAKES_BODY = /^(POST|PUT|PATCH|DELETE)$/;

/** The initial content of the form. */
export function formOf(service: Service, operation: Operation | null): TryForm {
  const none = { values: {}, query: [], headers: [], body: '', credentials: {} };
  if (service.protocol === 'mcp') {
    return { ...none, method: 'POST', path: '', body: mcpMessage(operation?.tool ?? null) };
  }
  if (operation === null) return { ...none, method: 'GET', path: '/' };
  const method = operation.method ?? 'GET';
  const body = TAKES_BODY.test(method) ? bodyOf(operation) : undefined;
  const path = operation.path ?? '/';
  const told = new Map(parametersOf(operation, 'path').map(({ name, value }) => [name, value]));
  const declared = parametersOf(operation, 'headers').map(({ name, value }) => ({ name, value }));
  const hasType = declared.some(({ name }) => name.toLowerCase() === 'content-type');
  return {
    ...none,
    method,
    path,
    values: Object.fromEntries(pathNames(path).map((name) => [name, told.get(name) ?? ''])),
    query: parametersOf(operation, 'query').map(({ name, value, required }) => ({
      name,
      value,
      required,
      isDeclared: true,
    })),
    headers: [
      ...declared,
      ...(body === undefined || hasType ? [] : [{ name: 'Content-Type', value: mediaTypeOf(operation, body) }]),
    ],
    body: body === undefined ? '' : jsonText(body),
  };
}

/** A message to an MCP server. @param tool  null: asks which tools there are */
export function mcpMessage(tool: string | null): string {
  const call =
    tool === null ? { method: 'tools/list' } : { method: 'tools/call', params: { name: tool, arguments: {} } };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, ...call }, null, 2);
}

/** Opens a session with an MCP server that has sessions. */
export const mcpHello = (): string =>
  JSON.stringify(
    {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'tollgate-page', version: '1' } },
    },
    null,
    2,
  );

/** What this call costs, in US dollars. Without operations it is the listing's price. */
export function costOf(service: Service, operation: Operation | null, form: TryForm): Cost {
  if (service.protocol !== 'mcp') return operation ?? service;
  const message = objectOf(parsed(form.body));
  if (message.method !== 'tools/call') return { price: 0 };
  const { name } = objectOf(message.params);
  return service.operations.find(({ tool }) => tool === name) ?? service;
}

/** Why a form cannot be sent. */
export type Fault = 'dots' | 'path' | 'pathValue' | 'required' | 'header' | 'ourHeader' | 'browserHeader' | 'twoKeys';

/** Headers that a browser does not let pages set. */
const NOT_IN_BROWSERS = new RegExp(
  '^(accept-charset|accept-encoding|access-control-.*|connection|content-length|cookie2?|date|dnt|expect|host|keep-alive|' +
    'origin|permissions-policy|proxy-.*|referer|sec-.*|set-cookie|te|trailer|transfer-encoding|upgrade|via)$',
  'i',
);
const OURS = /^(authorization|x-api-key|x-acf-.*)$/i;

/** @param key `key_id:secret` @param cost the cost named on the button @param mcpSession the session named by the MCP server */
export function requestOf(
  service: Service,
  form: TryForm,
  key: string,
  cost: Cost,
  mcpSession: string | null = null,
): { readonly request: CallRequest } | { readonly fault: Fault; readonly name: string } {
  const fault = faultOf(form);
  if (fault !== null) return fault;
  const given = Object.entries(form.credentials).filter(([, value]) => value.trim() !== '');
  const usesAuthorization = given.some(([name]) => name === 'authorization');
  const headers: Record<string, string> = {
    ...(usesAuthorization ? { 'X-Api-Key': key } : { Authorization: `Bearer ${key}` }),
    // Always six decimals: short forms of small numbers have an exponent.
    'X-ACF-Max-Amount': mostOf(cost).toFixed(6),
    ...(isByUse(cost) ? { 'X-ACF-Usage-Event': 'true' } : {}),
    ...(service.protocol === 'mcp'
      ? { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' }
      : {}),
    ...(mcpSession === null ? {} : { 'Mcp-Session-Id': mcpSession }),
  };
  Object.assign(headers, headersOf(form));
  for (const [name, value] of given) headers[name] = value.trim();
  if (given.length > 0) headers['X-ACF-Forward'] = given.map(([name]) => name).join(', ');
  const { method, body } = form;
  return { request: { method, target: targetOf(service, form), headers, body: hasBody(form) ? body : null } };
}

/** Path and query in the form that is sent. */
export const targetOf = (service: Service, form: TryForm): string =>
  service.protocol === 'mcp' ? service.proxy_path : service.proxy_path.replace(/\/$/, '') + sampleOf(form).target;

/** The request, for programs. The credentials of its caller are not in it. Not for MCP servers. */
export function sampleOf(form: TryForm): Sample {
  const [template = '', ...rest] = isTyped(form) ? form.path.split('?') : [form.path];
  const typed = rest.join('?');
  const pairs = form.query.filter(({ name, value, isDeclared, required }) =>
    isDeclared ? required || value !== '' : name !== '',
  );
  const query = [typed === '' ? '' : sendableQuery(typed), queryOf(pairs)].filter((part) => part !== '').join('&');
  const path = pathOf(template, form.values);
  const headers = Object.entries(headersOf(form)).map(([name, value]) => ({ name, value }));
  const isType = ({ name }: Pair): boolean => name.toLowerCase() === 'content-type';
  // The type that browsers send with a text.
  const mediaType = headers.findLast(isType)?.value ?? 'text/plain;charset=UTF-8';
  return {
    method: form.method,
    path,
    query: [...Array.from(new URLSearchParams(typed), ([name, value]) => ({ name, value })), ...pairs],
    target: path + (query === '' ? '' : `?${query}`),
    headers: headers.filter((pair) => !isType(pair)),
    body: hasBody(form) ? { value: shortened(bodyValue(form.body)), mediaType } : null,
  };
}

const headersOf = (form: TryForm): Record<string, string> =>
  Object.fromEntries(
    form.headers.map(({ name, value }) => [name.trim(), value.trim()] as const).filter(([name]) => name !== ''),
  );

/** An object or a list, if its text is as programs would write it; otherwise the text. A long number would lose digits. */
function bodyValue(text: string): Json {
  const value = parsed(text);
  const isSame = text === JSON.stringify(value) || text === JSON.stringify(value, null, 2);
  return isSame && typeof value === 'object' && value !== null ? (value as Json) : text;
}

const hasBody = ({ method, body }: TryForm): boolean => TAKES_BODY.test(method) && body !== '';

/** A typed path has no values. */
const isTyped = (form: TryForm): boolean => Object.keys(form.values).length === 0;

const sendableQuery = (text: string): string =>
  wellFormed(text).replace(/[^\x21-\x7e]|["#'<>]/gu, (character) =>
    character === "'" ? '%27' : encodeURIComponent(character),
  );

function faultOf(form: TryForm): { fault: Fault; name: string } | null {
  if (form.path !== '' && !form.path.startsWith('/')) return { fault: 'path', name: '' };
  const empty = Object.entries(form.values).find(([name, value]) => name !== '*' && value === '');
  if (empty !== undefined) return { fault: 'pathValue', name: empty[0] };
  if (hasDotSegment(pathOf(form.path.split('?')[0] ?? '', form.values))) return { fault: 'dots', name: '' };
  const missing = form.query.find(({ required, value }) => required && value === '');
  if (missing !== undefined) return { fault: 'required', name: missing.name };
  for (const { name, value } of form.headers) {
    const header = name.trim();
    if (header === '') continue;
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(header) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value.trim())) {
      return { fault: 'header', name: header };
    }
    if (OURS.test(header)) return { fault: 'ourHeader', name: header };
    if (NOT_IN_BROWSERS.test(header)) return { fault: 'browserHeader', name: header };
  }
  const given = Object.entries(form.credentials).filter(([, value]) => value.trim() !== '');
  const both = given.filter(([name]) => name === 'authorization' || name === 'x-api-key');
  if (both.length > 1) return { fault: 'twoKeys', name: '' };
  const unsendable = given.find(
    ([name, value]) => NOT_IN_BROWSERS.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value.trim()),
  );
  return unsendable === undefined ? null : { fault: 'browserHeader', name: unsendable[0] };
}
