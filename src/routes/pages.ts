import { ApiError } from '../errors.ts';
import { prefers, takes } from '../http/accept-headers.ts';
import { ANY_QUERY, type JsonSchema, type ResponseDescription, type Route } from '../http/route.ts';
import { CACHE_CONTROL, VARY } from '../openapi/headers.ts';
import { OPERATOR } from '../openapi/operator.ts';
import { json, record, TEXT, text } from '../openapi/schemas.ts';
import { REFERENCE_POLICY, referencePage } from '../pages/reference.ts';
import { WELCOME_POLICY, welcomePage } from '../pages/welcome.ts';
import type { OperatorDetails } from '../platform/operator.ts';
import { VERSION } from '../version.ts';

/** What `/` and the pages point to, if the gateway has a route there. */
const TARGETS = [
  { key: 'discover', text: 'Services', path: '/api/v1/discover' },
  { key: 'docs', text: 'API reference', path: '/docs' },
  { key: 'openapi', text: 'OpenAPI', path: '/api/v1/openapi.json' },
  { key: 'llms', text: 'For agents', path: '/llms.txt' },
  { key: 'mcp', text: 'MCP', path: '/mcp' },
  { key: 'mcp_server', text: 'MCP server description', path: '/.well-known/mcp/server.json' },
] as const;
/** These routes are made beside or after the pages; `/mcp` is not a route. */
const ALWAYS: readonly string[] = ['/docs', '/api/v1/openapi.json', '/mcp'];
/** The paths that people want to open in a browser. */
const FOR_PEOPLE: readonly string[] = ['discover', 'docs', 'openapi', 'llms'];

const LINKS: JsonSchema = {
  title: 'Links',
  description: 'Paths of this gateway, by what is there',
  type: 'object',
  required: ['discover', 'docs', 'openapi'],
  properties: Object.fromEntries(TARGETS.map(({ key }) => [key, TEXT])),
};
const ROOT = record(
  'Root',
  { name: { type: 'string', const: 'tollgate' }, version: TEXT, links: LINKS, operator: OPERATOR },
  { optional: ['operator'] },
);

const PAGE_HEADERS: NonNullable<ResponseDescription['headers']> = {
  'Content-Security-Policy': {
    description: 'What a page may do: load its own files, and nothing from elsewhere',
    schema: TEXT,
    example: REFERENCE_POLICY,
  },
  'Cache-Control': CACHE_CONTROL('no-cache'),
  'Referrer-Policy': { description: 'Links do not tell where they are', schema: TEXT, example: 'no-referrer' },
  'X-Content-Type-Options': { description: 'The type is what it says', schema: TEXT, example: 'nosniff' },
};
const pageHeaders = (policy: string): Record<string, string> => ({
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': policy,
  'Cache-Control': 'no-cache',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
});

/** As the header of the pages of web/ has them. */
const HEADER = [
  ['Services', '/'],
  ['Console', '/console'],
  ['API reference', '/docs'],
  ['For agents', '/llms.txt'],
] as const;

/**
 * `/`: what this is. `/docs`: the OpenAPI document, to be read by people.
 *
 * @param others    all other routes of the gateway
 * @param operator what the operator says about itself, or null
 * @param site      the pages of web/, with the catalog at `/`; null: `/` is a small page
 */
export function pageRoutes(
  others: readonly Route[],
  operator: OperatorDetails | null,
  site: ((root: object) => Route[]) | null,
): Route[] {
  const has = (path: string): boolean => ALWAYS.includes(path) || others.some((route) => route.path === path);
  const targets = TARGETS.filter(({ path }) => has(path));
  const shown = targets.filter(({ key }) => FOR_PEOPLE.includes(key)).map(({ text, path }) => [text, path] as const);
  const links = Object.fromEntries(targets.map(({ key, path }) => [key, path]));
  const root = { name: 'tollgate', version: VERSION, links, ...(operator === null ? {} : { operator }) };
  return [
    ...(site === null ? [welcomeRoute(root, shown)] : site(root)),
    ...referenceRoutes(site === null ? shown.filter(([, path]) => path !== '/docs') : HEADER),
  ];
}

function welcomeRoute(root: Root, shown: readonly (readonly [text: string, path: string])[]): Route {
  const welcome = welcomePage(shown, root.operator ?? null);
  return {
    method: 'GET',
    path: '/',
    summary: 'What this is, and where to go next: JSON, or a page for browsers',
    access: 'anyone',
    fromMemory: true,
    query: ANY_QUERY,
    responses: { 200: rootResponse(root) },
    handle: async ({ header }) =>
      prefers(header('accept'), 'text/html', 'application/json')
        ? { status: 200, headers: { ...pageHeaders(WELCOME_POLICY), Vary: 'Accept' }, body: welcome }
        : { status: 200, headers: { Vary: 'Accept' }, body: root },
  };
}

type Root = {
  readonly name: string;
  readonly version: string;
  readonly links: Readonly<Record<string, string>>;
  readonly operator?: OperatorDetails;
};

function rootResponse(root: Root): ResponseDescription {
  const optional = Object.entries(PAGE_HEADERS).map(([name, header]) => [
    name,
    { ...header, description: `Of the page: ${header.description}`, optional: true as const },
  ]);
  const { content, ...response } = json('What this is', ROOT, root, {
    ...Object.fromEntries(optional),
    Vary: VARY('Accept'),
  });
  return { ...response, content: { ...content, 'text/html': text('<!doctype html>…', 'A small page') } };
}

function referenceRoutes(links: readonly (readonly [text: string, path: string])[]): Route[] {
  const { html, assets } = referencePage(links);
  const byName = new Map(assets.map((asset) => [asset.name, asset]));
  return [
    {
      method: 'GET',
      path: '/docs',
      summary: 'This document as a page',
      access: 'anyone',
      fromMemory: true,
      query: ANY_QUERY,
      responses: {
        200: {
          description: 'The page',
          headers: PAGE_HEADERS,
          content: { 'text/html': text('<!doctype html>…', 'A page that loads its files from below /docs/') },
        },
      },
      handle: async () => ({ status: 200, headers: pageHeaders(REFERENCE_POLICY), body: html }),
    },
    {
      method: 'GET',
      path: '/docs/:file',
      summary: 'A script or style sheet of that page',
      access: 'anyone',
      fromMemory: true,
      query: ANY_QUERY,
      // A page with four files must not cost its reader five of sixty requests. The files are constants in memory.
      unmetered: true,
      params: {
        file: { description: 'Name of the file, with a digest of its content', schema: TEXT, example: 'reference.js' },
      },
      responses: { 200: assetResponse() },
      errors: ['not_found'],
      handle: async ({ params, header }) => {
        const asset = byName.get(params.file ?? '');
        if (asset === undefined) throw new ApiError('not_found');
        return { status: 200, ...(await asset.send(takes(header('accept-encoding'), 'gzip'))) };
      },
    },
  ];
}

function assetResponse(): ResponseDescription {
  return {
    description: 'The file, compressed for clients that accept gzip',
    headers: {
      'Cache-Control': CACHE_CONTROL('public, max-age=31536000, immutable'),
      Vary: VARY('Accept-Encoding'),
      'X-Content-Type-Options': { description: 'The type is what it says', schema: TEXT, example: 'nosniff' },
      'Content-Encoding': { description: 'gzip, or absent', schema: TEXT, example: 'gzip', optional: true },
    },
    content: {
      'text/javascript': text("'use strict';", 'A script'),
      'text/css': text('body { margin: 0; }', 'A style sheet'),
    },
  };
}
