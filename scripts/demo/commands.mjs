// @ts-check
// What `npm start` prints: keys to sign in with, and commands of which each works when it is pasted into a shell by itself.

/** @param {import('./make.mjs').Demo} demo @returns {string} */
export function demoKeys({ buyer, provider, admin }) {
  const rows = Object.entries({ buyer, provider, admin });
  return rows.map(([role, { key_id, secret }]) => `  ${role.padEnd(8)}  ${key_id}:${secret}`).join('\n');
}

/** @param {import('./make.mjs').Demo} demo @returns {string} */
export function demoCommands({ base_url: baseUrl, buyer, services }) {
  const authorization = `-H 'Authorization: Bearer ${buyer.key_id}:${buyer.secret}'`;
  const tryUrl = (/** @type {string} */ name) => {
    const service = services.find((candidate) => candidate.name === name);
    return service === undefined ? null : `'${baseUrl}${service.try_path}'`;
  };
  const call = (/** @type {string} */ options, /** @type {string} */ name) => {
    const url = tryUrl(name);
    return url === null ? null : `curl ${options} ${authorization} ${url}`;
  };
  const discoverOne = (/** @type {string} */ name) => {
    const service = services.find((candidate) => candidate.name === name);
    return service === undefined ? null : `curl '${baseUrl}/api/v1/discover/${service.id}'`;
  };
  /** @type {[string, string | null][]} */
  const commands = [
    ['Which services there are, and their prices', `curl '${baseUrl}/api/v1/discover'`],
    ['How one of them is called: its operations, with schemas, examples and prices', discoverOne('Text Statistics')],
    ['A paid call: the price is in X-ACF-Amount', call('-i', 'Text Statistics')],
    ['One of 100 free calls', call('-i', 'Echo Plus')],
    ['An event stream, event by event', call('-N', 'Event Stream')],
    [
      'A service whose every other call fails, so call it twice: the call that fails is not charged',
      call('-i', 'Flaky'),
    ],
    ['Every call of this key', `curl ${authorization} '${baseUrl}/api/v1/usage/me'`],
    ['The balance of this account', `curl ${authorization} '${baseUrl}/api/v1/balance/me'`],
  ];
  return commands.flatMap(([title, command]) => (command === null ? [] : [`# ${title}\n${command}`])).join('\n\n');
}
