// @ts-check
// Checks src/ against the layout of ARCHITECTURE.md: imports point down only and never in a circle, every foreign
// library has one owner, only the entry reads the environment, and what is exported is imported somewhere. In web/src/ imports
// must not form a circle either. Part of `npm run check` and of `npm test`.
//
//   node scripts/check-imports.mjs     one line per fault: file:line imports X: rule

import { readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { circles, findImports, lineAt, sourceFiles, unusedExports, withoutComments } from './import-graph.mjs';

/** @typedef {{ mayImport: string[], because: string }} Layer */

/**
 * Folder → the other folders that it may import from, from the top of the layout to the bottom. A folder that is allowed but
 * not imported is a fault too (`unusedAllowances`), so the table always shows the real dependencies.
 * @type {Record<string, Layer>}
 */
const layers = {
  roles: {
    mayImport: [
      'routes',
      'pages',
      'mcp',
      'http',
      'proxy',
      'gate',
      'admission',
      'replay',
      'watch',
      'upstream',
      'supervisor',
      'ledger',
      'keys',
      'accounts',
      'catalog',
      'quality',
      'secrets',
      'sessions',
      'traffic',
      'platform',
      'observability',
    ],
    because: 'a role puts the parts of one process together',
  },
  routes: {
    mayImport: [
      'http',
      'openapi',
      'pages',
      'watch',
      'upstream',
      'ledger',
      'keys',
      'accounts',
      'catalog',
      'quality',
      'secrets',
      'sessions',
      'traffic',
      'platform',
    ],
    because: 'routes are plain functions over domain calls',
  },
  mcp: {
    mayImport: ['http', 'gate', 'keys', 'platform', 'observability'],
    because: 'tools ask the API and make calls, and are handed both',
  },
  pages: { mayImport: [], because: 'a page is text; it asks for what it shows over HTTP' },
  openapi: {
    mayImport: ['http', 'gate', 'platform'],
    because: 'the document is made of routes only, and its schemas import nothing',
  },
  http: {
    mayImport: ['gate', 'keys', 'platform', 'observability'],
    because: 'the edge is handed what it serves',
  },
  proxy: {
    mayImport: [
      'gate',
      'admission',
      'replay',
      'upstream',
      'ledger',
      'keys',
      'catalog',
      'secrets',
      'platform',
      'observability',
    ],
    because: "one call's life knows nothing of the server that took it",
  },
  gate: {
    mayImport: ['admission', 'keys', 'platform', 'observability'],
    because: 'the gate decides who passes, not what they came for',
  },
  admission: { mayImport: ['ledger', 'platform', 'observability'], because: 'admission knows no HTTP' },
  replay: {
    mayImport: ['platform', 'observability'],
    because: 'it keeps answers, and knows neither the call that made them nor money',
  },
  watch: {
    mayImport: ['upstream', 'platform'],
    because: 'it asks services as calls do, and tells what it found to those that show listings',
  },
  upstream: { mayImport: [], because: 'the upstream client knows no money and no Redis' },
  ledger: { mayImport: ['platform'], because: domainRule() },
  keys: { mayImport: ['platform', 'observability'], because: domainRule() },
  sessions: { mayImport: ['accounts', 'keys', 'platform'], because: domainRule() },
  accounts: { mayImport: ['ledger', 'keys', 'catalog', 'platform'], because: domainRule() },
  catalog: { mayImport: ['platform'], because: domainRule() },
  secrets: { mayImport: ['catalog', 'platform'], because: 'what is encrypted belongs to a listing' },
  quality: { mayImport: ['catalog', 'ledger', 'platform'], because: domainRule() },
  traffic: { mayImport: ['platform'], because: 'what a process says of itself is handed to it' },
  supervisor: { mayImport: ['platform', 'observability'], because: 'the supervisor knows processes, not what they do' },
  platform: { mayImport: [], because: 'the platform is below everything that uses it' },
  observability: { mayImport: [], because: 'log and metrics are at the bottom' },
  config: { mayImport: ['platform'], because: 'configuration depends on nothing that is configured' },
};

function domainRule() {
  return 'the domain knows neither the call that uses it nor HTTP';
}

/** Files directly in src/. An entry may import everything, and no file may import an entry. */
const entries = ['main.ts', 'seed.ts'];
const usableFromEverywhere = ['assert.ts', 'errors.ts', 'fair-line.ts', 'shared.mjs', 'version.ts'];
const onlyEntriesReadConfig = 'only an entry reads the configuration and passes on what the other parts need';

/**
 * Foreign library → the only folders that may import it. Importing a package that has no row here is a fault.
 * @type {{ names: string[], owners: string[], because: string }[]}
 */
const libraries = [
  {
    names: ['uws-current', 'uws-legacy'],
    owners: ['http'],
    because: 'its objects are valid only during their callback, and one folder knows such rules',
  },
  {
    names: ['node:dns', 'node:dns/promises'],
    owners: ['upstream'],
    because: 'the address that was checked must be the one that is dialled',
  },
  {
    names: ['node:tls'],
    owners: ['upstream', 'platform'],
    because:
      'upstream dials services by the address that it has checked, platform dials only the stores of the operator',
  },
  {
    names: ['node:net'],
    owners: ['upstream', 'platform'],
    because: 'upstream dials services by the address that it has checked, and platform dials the stores',
  },
  {
    names: ['ioredis', 'postgres'],
    owners: ['platform'],
    because: 'one folder sets the retries and timeouts that keep money safe',
  },
  {
    names: ['pino', 'prom-client'],
    owners: ['observability'],
    because: 'one folder decides what is logged and counted',
  },
  {
    names: ['node:child_process'],
    owners: ['supervisor'],
    because: 'what starts a process must also stop it, in the right order',
  },
  {
    names: ['@modelcontextprotocol/server'],
    owners: ['mcp'],
    because: 'one room knows the protocol; the tools in it know only what they do',
  },
  {
    names: ['json-schema-to-ts'],
    owners: ['http'],
    because: 'it is types only, and the edge says what a handler gets',
  },
  { names: ['ajv'], owners: ['http'], because: 'input is validated where it enters' },
  {
    names: ['@seriousme/openapi-schema-validator', 'js-yaml'],
    owners: ['catalog'],
    because: 'documents of strangers are read by one folder, in a thread that is bounded in time and memory',
  },
  {
    names: ['node:worker_threads'],
    owners: ['catalog', 'observability'],
    because: 'a thread takes a core from the calls, so few folders decide how many there are and how long they run',
  },
];

const environmentReaders = ['config'];

/**
 * @typedef {import('./import-graph.mjs').Import} Import
 *
 * @typedef {object} Room where a file or the target of an import is: a folder of src, or a file directly in src
 * @property {string} name of the folder or file
 * @property {boolean} isFolder
 */

/**
 * @param {string} srcDir
 * @returns {string[]} one line per fault, sorted by file
 */
export function checkImports(srcDir) {
  /** @type {string[]} */
  const faults = [];
  for (const file of sourceFiles(srcDir)) {
    const code = withoutComments(readFileSync(path.join(srcDir, file), 'utf8'));
    for (const found of findImports(code)) {
      const fault = judge(file, found);
      if (fault !== null) faults.push(`src/${file}:${found.line} imports ${found.specifier}: ${fault}`);
    }
    faults.push(...environmentFaults(file, code));
  }
  return faults;
}

/**
 * @param {string} srcDir the whole src/: a part of it would use only a part of the table
 * @returns {string[]} one line for each folder that another folder may import but does not
 */
export function unusedAllowances(srcDir) {
  const used = new Set(
    sourceFiles(srcDir).flatMap((file) =>
      findImports(withoutComments(readFileSync(path.join(srcDir, file), 'utf8')))
        .filter(({ specifier }) => specifier.startsWith('.'))
        .map(({ specifier }) => path.posix.join(path.posix.dirname(file), specifier))
        .map((target) => `${roomOf(file).name} ${roomOf(target).name}`),
    ),
  );
  return Object.entries(layers).flatMap(([folder, { mayImport }]) =>
    mayImport
      .filter((other) => !used.has(`${folder} ${other}`))
      .map((other) => `scripts/check-imports.mjs: ${folder} may import ${other}, but does not`),
  );
}

/** @param {string} file relative to src @returns {Room} */
function roomOf(file) {
  const [first = ''] = file.split('/');
  return { name: first, isFolder: file.includes('/') };
}

/** @param {string} file @param {Import} found @returns {string | null} the broken rule */
function judge(file, found) {
  const from = roomOf(file);
  if (!isKnown(from)) return `${from.name} is not in the table of layers (scripts/check-imports.mjs)`;
  return found.specifier.startsWith('.') ? judgeLocal(file, from, found) : judgeLibrary(from, found.specifier);
}

/** @param {Room} place */
const isKnown = ({ name, isFolder }) =>
  isFolder ? name in layers : entries.includes(name) || usableFromEverywhere.includes(name);

/** @param {string} file @param {Room} from @param {Import} found */
function judgeLocal(file, from, { specifier, typeOnly }) {
  const target = path.posix.join(path.posix.dirname(file), specifier);
  if (target.startsWith('..')) return 'src imports no file from outside of src';
  const to = roomOf(target);
  if (!to.isFolder && usableFromEverywhere.includes(to.name)) return null;
  if (!to.isFolder && entries.includes(to.name)) return 'no file may import an entry';
  if (!to.isFolder && !isKnown(to)) return `${to.name} is not in the table of layers (scripts/check-imports.mjs)`;
  if (!from.isFolder && entries.includes(from.name)) return null;
  if (from.isFolder && from.name === to.name) return null;
  if (to.name === 'config') return typeOnly ? null : onlyEntriesReadConfig;
  if (!from.isFolder) return 'a file that every folder may import must not import a folder';
  const layer = layers[from.name];
  if (layer?.mayImport.includes(to.name)) return null;
  return `${from.name} may import ${layer?.mayImport.join(', ') || 'no other folder'}; ${layer?.because}`;
}

/** @param {Room} from @param {string} specifier */
function judgeLibrary(from, specifier) {
  const library = libraries.find(({ names }) => names.includes(specifier) || names.includes(`node:${specifier}`));
  if (library === undefined) {
    return specifier.startsWith('node:') ? null : 'this library has no owner (scripts/check-imports.mjs)';
  }
  if (from.isFolder && library.owners.includes(from.name)) return null;
  return `only src/${library.owners.join(' and src/')} may import it; ${library.because}`;
}

/** @param {string} file @param {string} code @returns {string[]} */
function environmentFaults(file, code) {
  const { name, isFolder } = roomOf(file);
  if (isFolder ? environmentReaders.includes(name) : entries.includes(name)) return [];
  return [...code.matchAll(/\bprocess\s*\??\.\s*env\b|\bprocess\s*\[|\benv\b[^;\n]*=\s*process\b/g)].map(
    (match) => `src/${file}:${lineAt(code, match.index)} reads process.env: ${onlyEntriesReadConfig}`,
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const folder = (/** @type {string} */ name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
  const [src, web] = [folder('src'), folder('web/src')];
  const faults = [
    ...checkImports(src),
    ...unusedAllowances(src),
    ...circles(src).map((fault) => `src/${fault}`),
    ...circles(web).map((fault) => `web/src/${fault}`),
    ...unusedExports(src, ['test', 'bench', 'scripts', 'web'].map(folder)),
  ];
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) process.exitCode = 1;
}
