import { readFileSync } from 'node:fs';
import { baseUrlOf } from '../http/base-url.ts';
import { ANY_QUERY, type Route } from '../http/route.ts';
import { CACHE_CONTROL } from '../openapi/headers.ts';
import { text } from '../openapi/schemas.ts';
import type { OperatorDetails } from '../platform/operator.ts';

/**
 * Read once at start. Each `{{base_url}}` becomes the address by which the caller reached the gateway, and `{{operator}}` a paragraph
 * on who runs it.
 */
const PAGE = readFileSync(new URL('./llms/page.txt', import.meta.url), 'utf8');

/**
 * `GET /llms.txt`: everything that an agent with a shell and curl needs to get a key, find a service, call it and read what it
 * cost, in the format of llmstxt.org. test/clients/llms.ts runs each command of the page.
 */
export function llmsRoutes({
  trustedProxyHops,
  operator,
}: {
  readonly trustedProxyHops: number;
  readonly operator: OperatorDetails | null;
}): Route[] {
  // A function, because `replaceAll` would read `$` in a text as a pattern.
  const page = PAGE.replaceAll('{{operator}}', () => operatorText(operator));
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
        body: page.replaceAll('{{base_url}}', () => baseUrlOf(request, trustedProxyHops)),
        // The page depends on `Host`, and behind a proxy on X-Forwarded-Proto: no shared cache may give it to others.
        headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' },
      }),
    },
  ];
}

/** Begins with an empty line, unless there is nothing to say. */
function operatorText(operator: OperatorDetails | null): string {
  if (operator === null) return '';
  const { name, contact, terms_url: terms } = operator;
  const lines = [
    ...(name === undefined ? [] : [`This gateway is run by ${name}.`]),
    ...(contact === undefined ? [] : [`Contact of its operator: ${contact}`]),
    ...(terms === undefined ? [] : [`Its terms: ${terms}`]),
  ];
  return `\n${lines.join('\n')}\n`;
}
