// The tools that show a page of the API: which page each one asks for, and which parts of it it shows.

import type { RequestHead } from '../gate/caller-io.ts';
import { getHead, headerOf } from '../http/request-head.ts';
import type { ApiResponse } from '../http/route.ts';
import { FOUND_FIELDS, fitted, PAGE } from './found-services.ts';
import { type ReadyCall, readyArguments } from './ready-arguments.ts';
import { MCP_NOTE, type ToolName } from './tools.ts';

type PageTool = Exclude<ToolName, 'call_service'>;
type Arguments = Readonly<Record<string, unknown>>;

/** @param outer  the MCP request */
export function pageOf(name: PageTool, args: Arguments, { headers }: Pick<RequestHead, 'headers'>): RequestHead {
  switch (name) {
    case 'discover_services':
      return getHead('/api/v1/discover', parameters({ limit: PAGE, fields: FOUND_FIELDS, ...args }));
    case 'get_service':
      // The page shows the address by which the caller reaches the gateway.
      return getHead(`/api/v1/discover/${args.service_id}`, undefined, addressHeaders(headers));
    case 'get_usage':
      return getHead('/api/v1/usage/me', parameters({ limit: PAGE, ...args }));
    case 'get_balance':
      return getHead('/api/v1/balance/me', undefined);
  }
}

/** What a model is shown instead of a whole page: a part of it, or how to use it. */
export function shownBy(name: PageTool, { limit = PAGE }: Arguments, answer: ApiResponse): Record<string, unknown> {
  const body = bodyOf(answer);
  switch (name) {
    case 'discover_services':
      return fitted(body, limit as number);
    case 'get_service': {
      const call_service = readyArguments(body.id as string, body.call as ReadyCall);
      return { ...body, call_service, ...(body.protocol === 'mcp' ? { note: MCP_NOTE } : {}) };
    }
    case 'get_usage': {
      // A year of days, or three days of hours, would fill a model's context with numbers that it did not request.
      const { by_day: _, by_hour: __, ...rest } = body;
      return rest;
    }
    case 'get_balance':
      return body;
  }
}

function addressHeaders(headers: readonly string[]): string[] {
  return ['host', 'x-forwarded-proto'].flatMap((name) => {
    const value = headerOf(headers, name);
    return value === undefined ? [] : [name, value];
  });
}

function parameters(args: Arguments): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) query.set(name, String(value));
  return query.toString();
}

/** A page that caches its answers caches them as text. */
function bodyOf({ body }: ApiResponse): Record<string, unknown> {
  return (typeof body === 'string' ? JSON.parse(body) : body) as Record<string, unknown>;
}
