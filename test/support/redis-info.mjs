// @ts-check

/**
 * A number of Redis's reply to INFO. JavaScript, because a worker thread reads it too (test/fault/fsync-watch.mjs).
 *
 * @param {string} info
 * @param {string} name
 */
export function infoNumber(info, name) {
  const number = new RegExp(`^${name}:(\\d+)\r?$`, 'm').exec(info)?.[1];
  if (number === undefined) throw new Error(`INFO has no number ${name}`);
  return Number(number);
}
