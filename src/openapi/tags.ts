/** The chapters of the OpenAPI document, in its order. A chapter contains the operations on its paths and below them. */
export const TAGS = [
  { name: 'Keys', description: 'Accounts and their API keys', paths: ['/api/v1/keys', '/api/v1/accounts'] },
  { name: 'Sessions', description: 'People who are signed in in a browser', paths: ['/api/v1/session'] },
  {
    name: 'Catalog',
    description: 'Finding services, and listing them',
    paths: ['/api/v1/discover', '/api/v1/services'],
  },
  { name: 'Calls', description: 'Calling services through the gateway', paths: ['/api/v1/proxy'] },
  {
    name: 'Money',
    description: 'What calls cost, what is left, and what services earned',
    paths: ['/api/v1/usage', '/api/v1/balance', '/api/v1/earnings', '/api/v1/statement'],
  },
  { name: 'Agents', description: 'The marketplace as tools for agents', paths: ['/mcp', '/.well-known/mcp'] },
  { name: 'Admin', description: 'For the operator', paths: ['/api/v1/admin'] },
  {
    name: 'Gateway',
    description: 'The gateway itself: health, and descriptions of this API',
    paths: ['/', '/docs', '/healthz', '/readyz', '/api/v1/openapi.json', '/llms.txt'],
  },
] as const;

/** Throws for a path without a chapter: a new path must be added to one above. */
export function tagOf(path: string): string {
  const tag = TAGS.find(({ paths }) => paths.some((first) => path === first || path.startsWith(`${first}/`)));
  if (tag === undefined) throw new Error(`${path} has no chapter in src/openapi/tags.ts`);
  return tag.name;
}
