// @ts-check
// Makes the demo at the first start: an admin, a provider with listings, and a funded buyer, all through the public API. Every
// secret is saved before the next step, so that after an interruption the next start goes on with the keys that exist. Otherwise
// there would be an admin whose key nobody has.
// Tested by test/scripts/start.test.ts and test/scripts/ready.test.ts.

import { rmSync } from 'node:fs';
import { request } from '../local/api.mjs';
import { readJson, writeJson } from '../local/files.mjs';
import { demoListings, endpointOf } from './listings.mjs';

/**
 * @typedef {import('../local/api.mjs').Key} Key
 *
 * @typedef {object} Demo what DATA_DIR/demo.json holds
 * @property {string} base_url
 * @property {Key} admin
 * @property {Key} provider
 * @property {Key} buyer
 * @property {{ id: string, name: string, try_path: string }[]} services
 *
 * @typedef {object} DemoOptions
 * @property {string} baseUrl
 * @property {number} demoPort the port on which the demo service listens now
 * @property {number | undefined} registeredPort the port that the listings name
 * @property {string} demoFile
 * @property {string} partialFile
 * @property {string | undefined} bootstrapToken the gateway's ADMIN_BOOTSTRAP_TOKEN
 */

const demoCreditUsd = 10;

class UnexpectedAnswer extends Error {
  /** @param {string} what @param {import('../local/api.mjs').ApiAnswer} answer */
  constructor(what, answer) {
    super(`${what} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    this.status = answer.status;
  }
}

/**
 * Makes the demo. If there is one, updates it to the ports of this start.
 * @param {DemoOptions} options
 * @returns {Promise<Demo>}
 */
export async function ensureDemo(options) {
  const { baseUrl, demoPort, registeredPort, demoFile, partialFile } = options;
  /** @type {Demo | null} */
  const existing = readJson(demoFile);
  if (existing === null) return makeDemo(options);
  rmSync(partialFile, { force: true });
  if (registeredPort !== demoPort) {
    for (const { id, name } of existing.services) await moveListing(baseUrl, existing.provider, id, name, demoPort);
  }
  if (existing.base_url === baseUrl) return existing;
  const moved = { ...existing, base_url: baseUrl };
  writeJson(demoFile, moved);
  return moved;
}

/** @param {DemoOptions} options @returns {Promise<Demo>} */
async function makeDemo(options) {
  const partial = readJson(options.partialFile);
  try {
    return await makeFrom(partial ?? {}, options);
  } catch (error) {
    // 401: the saved keys belong to a database that was deleted after the interrupted start. Make all keys again.
    if (partial !== null && error instanceof UnexpectedAnswer && error.status === 401) return makeFrom({}, options);
    throw error;
  }
}

/**
 * @param {Partial<Demo>} partial what an interrupted start had made already
 * @param {DemoOptions} options
 * @returns {Promise<Demo>}
 */
async function makeFrom(partial, { baseUrl, demoPort, demoFile, partialFile, bootstrapToken }) {
  const made = { ...partial, base_url: baseUrl };
  const save = () => writeJson(partialFile, made);
  for (const role of /** @type {const} */ (['admin', 'provider', 'buyer'])) {
    made[role] ??= await makeKey(baseUrl, role, bootstrapToken);
    save();
  }
  const { admin, provider, buyer } = /** @type {Demo} */ (made);
  made.services = await makeListings(baseUrl, provider, demoPort);
  await callApi(baseUrl, 'POST', '/admin/credits', admin, {
    key_id: buyer.key_id,
    amount: demoCreditUsd,
    // A second request with the same reference makes no second credit.
    reference: `demo ${buyer.key_id}`,
  });
  const demo = { base_url: baseUrl, admin, provider, buyer, services: made.services };
  writeJson(demoFile, demo);
  rmSync(partialFile, { force: true });
  return demo;
}

/** @param {string} baseUrl @param {'admin' | 'provider' | 'buyer'} role @param {string | undefined} bootstrapToken */
async function makeKey(baseUrl, role, bootstrapToken) {
  const headers = role === 'admin' && bootstrapToken !== undefined ? { 'x-admin-bootstrap': bootstrapToken } : {};
  const key = await callApi(baseUrl, 'POST', '/keys', undefined, { owner_id: `demo-${role}`, role }, headers);
  return { key_id: key.key_id, secret: key.secret };
}

/**
 * Makes the listings. Those that an interrupted start has made are kept, and get the present port.
 * @param {string} baseUrl @param {Key} provider @param {number} demoPort
 */
async function makeListings(baseUrl, provider, demoPort) {
  const { services: existing } = await callApi(baseUrl, 'GET', '/services?mine=true', provider);
  const services = [];
  for (const { tryPath, listing } of demoListings) {
    const { name } = listing;
    let id = existing.find((/** @type {{ name: string }} */ other) => other.name === name)?.id;
    if (id !== undefined) await moveListing(baseUrl, provider, id, name, demoPort);
    else
      id = (await callApi(baseUrl, 'POST', '/services', provider, { ...listing, endpoint: endpointOf(name, demoPort) }))
        .id;
    services.push({ id, name, try_path: `/api/v1/proxy/${id}/${tryPath}` });
  }
  return services;
}

/**
 * Changes the endpoint of a listing, unless somebody who tried the demo out has removed it.
 * @param {string} baseUrl @param {Key} provider @param {string} id @param {string} name @param {number} demoPort
 */
async function moveListing(baseUrl, provider, id, name, demoPort) {
  const endpoint = endpointOf(name, demoPort);
  if (endpoint === null) return;
  try {
    await callApi(baseUrl, 'PATCH', `/services/${id}`, provider, { endpoint });
  } catch (error) {
    if (!(error instanceof UnexpectedAnswer && error.status === 404)) throw error;
  }
}

/**
 * @param {string} baseUrl @param {string} method @param {string} apiPath
 * @param {Key | undefined} key @param {unknown} [body] @param {Record<string, string>} [headers]
 */
async function callApi(baseUrl, method, apiPath, key, body, headers = {}) {
  const url = `${baseUrl}/api/v1${apiPath}`;
  const answer = await request(method, url, { body, headers, ...(key === undefined ? {} : { key }) });
  if (answer.status < 200 || answer.status > 299) throw new UnexpectedAnswer(`${method} ${url}`, answer);
  return answer.body;
}
