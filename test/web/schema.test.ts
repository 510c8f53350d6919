// The types of the pages' API client are those of the gateway's own OpenAPI document. After a change of the API:
//
//   npx vitest run test/web/schema.test.ts -u

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Marketplace } from '../integration/marketplace.ts';
import { scratchDir } from '../support/stores.ts';

const SCHEMA = path.resolve('web/src/api/schema.d.ts');

test('the client of the pages is generated from the current OpenAPI document', async () => {
  const market = await Marketplace.start({}, { writer: false });
  let document: { paths: Record<string, unknown> };
  try {
    const response = await fetch(`${market.baseUrl}/api/v1/openapi.json`);
    document = (await response.json()) as typeof document;
  } finally {
    await market.stop();
  }
  // Pages need no types, and calls of services are whatever the service makes them.
  for (const name of Object.keys(document.paths)) {
    if (!name.startsWith('/api/v1/') || name.startsWith('/api/v1/proxy/')) delete document.paths[name];
  }
  await expect(typesOf(document)).toMatchFileSnapshot(SCHEMA);
});

function typesOf(document: object): string {
  const dir = mkdtempSync(path.join(scratchDir(), 'web-schema-'));
  writeFileSync(path.join(dir, 'openapi.json'), JSON.stringify(document));
  const hook = path.resolve('test/openapi/typescript-for-generator.mjs');
  const generator = path.resolve('node_modules/openapi-typescript/bin/cli.js');
  execFileSync(process.execPath, ['--import', hook, generator, 'openapi.json', '-o', 'out.d.ts'], { cwd: dir });
  return readFileSync(path.join(dir, 'out.d.ts'), 'utf8');
}
