import { ApiError } from '../errors.js';
import { prefers, takes } from '../http/accept.js';
import { ANY_QUERY } from '../http/route.js';
import { CACHE_CONTROL, VARY } from '../openapi/headers.js';
import { json, record, TEXT, text } from '../openapi/schemas.js';
import { REFERENCE_POLICY, referencePage } from '../pages/reference.js';
import { WELCOME_POLICY, welcomePage } from '../pages/welcome.js';
import { VERSION } from '../version.js';
/** What `/` and the pages point to, if the gateway has a route there. Nothing points to what is not there. */
const PLACES = [
    { key: 'discover', text: 'Services', path: '/api/v1/discover' },
    { key: 'docs', text: 'API reference', path: '/docs' },
    { key: 'openapi', text: 'OpenAPI', path: '/api/v1/openapi.json' },
    { key: 'llms', text: 'For agents', path: '/llms.txt' },
    { key: 'mcp', text: 'MCP', path: '/mcp' },
    { key: 'mcp_server', text: 'MCP server description', path: '/.well-known/mcp/server.json' },
];
/** They are made beside or after the pages; `/mcp` is no route. */
const ALWAYS = ['/docs', '/api/v1/openapi.json', '/mcp'];
/** Those that a person wants to open in a browser. */
const FOR_PEOPLE = ['discover', 'docs', 'openapi', 'llms'];
const LINKS = {
    title: 'Links',
    description: 'Paths of this gateway, by what is there',
    type: 'object',
    required: ['discover', 'docs', 'openapi'],
    properties: Object.fromEntries(PLACES.map(({ key }) => [key, TEXT])),
};
const ROOT = record('Root', { name: { type: 'string', const: 'tollgate' }, version: TEXT, links: LINKS });
const PAGE_HEADERS = {
    'Content-Security-Policy': {
        description: 'What a page may do: load its own files, and nothing from elsewhere',
        schema: TEXT,
        example: REFERENCE_POLICY,
    },
    'Cache-Control': CACHE_CONTROL('no-cache'),
    'Referrer-Policy': { description: 'Links do not tell where they are', schema: TEXT, example: 'no-referrer' },
    'X-Content-Type-Options': { description: 'The type is what it says', schema: TEXT, example: 'nosniff' },
};
const pageHeaders = (policy) => ({
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy,
    'Cache-Control': 'no-cache',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
});
/**
 * `/`: what this is. `/docs`: the OpenAPI document, to be read by people.
 *
 * @param others  all other routes of the gateway
 * @param site    the pages of web/, with the catalog at `/`; null: `/` is a small page
 */
export function pageRoutes(others, site) {
    const has = (path) => ALWAYS.includes(path) || others.some((route) => route.path === path);
    const places = PLACES.filter(({ path }) => has(path));
    const shown = places.filter(({ key }) => FOR_PEOPLE.includes(key)).map(({ text, path }) => [text, path]);
    const links = Object.fromEntries(places.map(({ key, path }) => [key, path]));
    const root = { name: 'tollgate', version: VERSION, links };
    return [
        ...(site === null ? [welcomeRoute(root, shown)] : site(root)),
        ...referenceRoutes(shown.filter(([, path]) => path !== '/docs')),
    ];
}
function welcomeRoute(root, shown) {
    const welcome = welcomePage(shown);
    return {
        method: 'GET',
        path: '/',
        summary: 'What this is, and where to go on: JSON, or a page for browsers',
        access: 'anyone',
        fromMemory: true,
        query: ANY_QUERY,
        responses: { 200: rootResponse(root) },
        handle: async ({ header }) => prefers(header('accept'), 'text/html', 'application/json')
            ? { status: 200, headers: { ...pageHeaders(WELCOME_POLICY), Vary: 'Accept' }, body: welcome }
            : { status: 200, headers: { Vary: 'Accept' }, body: root },
    };
}
function rootResponse(root) {
    const optional = Object.entries(PAGE_HEADERS).map(([name, header]) => [
        name,
        { ...header, description: `Of the page: ${header.description}`, optional: true },
    ]);
    const { content, ...response } = json('What this is', ROOT, root, {
        ...Object.fromEntries(optional),
        Vary: VARY('Accept'),
    });
    return { ...response, content: { ...content, 'text/html': text('<!doctype html>…', 'A small page') } };
}
function referenceRoutes(links) {
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
            // A page of four files must not cost its reader five requests of sixty. They are constants in memory.
            unmetered: true,
            params: {
                file: { description: 'Name of the file, with a digest of its content', schema: TEXT, example: 'reference.js' },
            },
            responses: { 200: assetResponse() },
            errors: ['not_found'],
            handle: async ({ params, header }) => {
                const asset = byName.get(params.file ?? '');
                if (asset === undefined)
                    throw new ApiError('not_found');
                return { status: 200, ...(await asset.send(takes(header('accept-encoding'), 'gzip'))) };
            },
        },
    ];
}
function assetResponse() {
    return {
        description: 'The file, compressed for those who take gzip',
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
//# sourceMappingURL=pages.js.map