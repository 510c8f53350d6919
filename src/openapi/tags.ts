/** The chapters of the OpenAPI document, in its order. The first whose prefix fits a path has its operations. */
export const TAGS = [
  { name: 'Keys', description: 'Accounts and their API keys', prefixes: ['/api/v1/keys'] },
  {
    name: 'Catalog',
    description: 'Finding services, and listing them',
    prefixes: ['/api/v1/discover', '/api/v1/services'],
  },
  { name: 'Calls', description: 'Calling services through the gateway', prefixes: ['/api/v1/proxy'] },
  {
    name: 'Money',
    description: 'What calls cost, what is left, and what services earned',
    prefixes: ['/api/v1/usage', '/api/v1/balance', '/api/v1/earnings'],
  },
  { name: 'Agents', description: 'The marketplace as tools for agents', prefixes: ['/mcp', '/.well-known/mcp'] },
  { name: 'Admin', description: 'For the operator', prefixes: ['/api/v1/admin'] },
  { name: 'Gateway', description: 'The gateway itself: health, and descriptions of this API', prefixes: ['/'] },
] as const;

export function tagOf(path: string): string {
  const tag = TAGS.find(({ prefixes }) => prefixes.some((prefix) => path.startsWith(prefix)));
  if (tag === undefined) throw new Error(`no tag fits ${path}`);
  return tag.name;
}
