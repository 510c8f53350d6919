// Unmodified clients, and our examples, against one marketplace with the services of the demo.

import { afterAll, beforeAll, describe } from 'vitest';
import { startBrowser } from '../support/browser.ts';
import { browserPageTests } from './browser-page.ts';
import { clientsPageTests } from './clients-page.ts';
import { commandLineTests } from './command-line.ts';
import { DemoMarket } from './demo-market.ts';
import { exampleTests } from './examples.ts';
import { libraryTests } from './libraries.ts';
import { llmsTests } from './llms.ts';
import { mcpServerTests } from './mcp-server.ts';
import { paidOnceTests } from './paid-once.ts';
import { priceByUseTests } from './price-by-use.ts';
import { sdkTests } from './sdks.ts';

let demo: DemoMarket;

beforeAll(async () => {
  demo = await DemoMarket.start();
});
afterAll(() => demo.stop());

describe('SDKs', () => sdkTests(() => demo));
describe('SDKs that repeat calls', () => paidOnceTests(() => demo));
describe('HTTP libraries', () => libraryTests(() => demo));
describe('curl and Python', () => commandLineTests(() => demo));
describe('examples', () => exampleTests(() => demo));
describe('examples that sell by use', () => priceByUseTests(() => demo));
describe('examples/mcp-server.mjs', () => mcpServerTests(() => demo));
describe('/llms.txt', () => llmsTests(() => demo));
describe('docs/clients.md', () => clientsPageTests(() => demo));
describe('examples/browser.html', () => browserPageTests(() => demo, startBrowser));
