// @ts-check
// People who open pages of the catalog, LOADS_PER_SECOND of them, until it is told to end: each load is a page and the files that it names,
// as a browser without a cache asks for them.
//
//   node bench/load/page-visitors.mjs PORT LOADS_PER_SECOND RESULT_FILE FILE...

import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';

const [port, rate, resultFile = '', ...files] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: 64 });
/** What people open: the front page most of all, searches, languages, one category. */
const addresses = [
  '/',
  '/',
  '/',
  '/?sort=price',
  '/?sort=newest',
  '/?q=translat',
  '/?q=translat&free=true',
  '/?category=data',
  '/?lang=de',
  '/?lang=ja',
  '/?q=image',
  '/?max_price=0.01',
  '/?min_quality=60',
  '/?lang=fr&q=weather',
  '/?q=x',
];

/** @param {string} path @returns {Promise<Buffer>} */
function get(path) {
  return new Promise((resolve, reject) => {
    const headers = { Accept: 'text/html', 'Accept-Encoding': 'br, gzip' };
    const sent = request({ host: '127.0.0.1', port, path, agent, headers }, (response) => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () => {
        if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
        else resolve(Buffer.concat(chunks));
      });
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

const counts = { loads: 0, bytes: 0, failed: 0, lastError: '' };

/** @param {string} address */
async function load(address) {
  try {
    const page = await get(address);
    const parts = await Promise.all(files.map(get));
    counts.loads += 1;
    counts.bytes += page.length + parts.reduce((sum, part) => sum + part.length, 0);
  } catch (error) {
    counts.failed += 1;
    counts.lastError = String(error);
  }
}

let begun = 0;
const timer = setInterval(() => {
  void load(/** @type {string} */ (addresses[begun % addresses.length]));
  begun += 1;
}, 1000 / Number(rate));
process.once('SIGTERM', () => {
  clearInterval(timer);
  writeFileSync(resultFile, JSON.stringify(counts));
  process.exit(0);
});
