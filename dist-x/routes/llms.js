import { readFileSync } from 'node:fs';
import { baseUrlOf } from '../http/base-url.js';
import { ANY_QUERY } from '../http/route.js';
import { CACHE_CONTROL } from '../openapi/headers.js';
import { text } from '../openapi/schemas.js';
/** Read once at start. Each `{{base_url}}` becomes the address by which the caller reached the gateway. */
const PAGE = readFileSync(new URL('./llms/page.txt', import.meta.url), 'utf8');
/**
 * `GET /llms.txt`: everything that an agent with a shell and curl needs to get a key, find a service, call it and read what that
 * cost, in the format of llmstxt.org. test/clients/llms.ts runs each command of the page.
 */
export function llmsRoutes({ trustedProxyHops }) {
    return [
        {
            method: 'GET',
            path: '/llms.txt',
            summary: 'How to use this gateway, on one page for agents',
            access: 'anyone',
            fromMemory: true,
            query: ANY_QUERY,
            responses: {
                200: {
                    description: 'The page',
                    headers: { 'Cache-Control': CACHE_CONTROL('no-store') },
                    content: { 'text/plain': text('# Tollgate', 'Markdown') },
                },
            },
            handle: async (request) => ({
                status: 200,
                body: PAGE.replaceAll('{{base_url}}', baseUrlOf(request, trustedProxyHops)),
                // The page depends on `Host`, and behind a proxy on X-Forwarded-Proto: no shared cache may give it to others.
                headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' },
            }),
        },
    ];
}
//# sourceMappingURL=llms.js.map