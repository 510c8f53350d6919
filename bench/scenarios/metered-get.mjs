// @ts-check
import { p99, proxyCpu, redisCpu, wholeCpu } from '../report/summary.mjs';
import { comparison } from './small-calls.mjs';

export const question =
  'What does one small metered call cost (authenticate, limit, charge, forward, record), compared with proxies that do ' +
  'less and with proxies that do the same?';

export const defaults = { connections: [16, 64, 256], seconds: 4, rounds: 3 };

const peerNames = /** @type {const} */ (['direct', 'nginx', 'nginx-lua', 'fastify', 'tollgate']);

const few = (/** @type {number} */ connections) => connections < 64;
const many = (/** @type {number} */ connections) => connections >= 64;
const is64 = (/** @type {number} */ connections) => connections === 64;
const isNot64 = (/** @type {number} */ connections) => connections !== 64;
const ratio = /** @type {const} */ ({ unit: '', is: 'at most' });
const ours = { peer: 'tollgate' };
const lua = {
  ...ratio,
  what: 'CPU vs nginx + Lua + Redis',
  of: ours,
  against: { peer: 'nginx-lua' },
  metric: proxyCpu,
};
const luaRedis = {
  ...ratio,
  what: 'Redis CPU vs nginx + Lua',
  of: ours,
  against: { peer: 'nginx-lua' },
  metric: redisCpu,
};
const luaWhole = { ...lua, what: 'CPU of the whole call vs nginx + Lua + Redis', metric: wholeCpu };
const luaP99 = { ...lua, what: 'p99 vs nginx + Lua + Redis', metric: p99 };
const plain = { ...ratio, what: 'CPU vs plain nginx', of: ours, against: { peer: 'nginx' }, metric: proxyCpu };
const node = {
  ...ratio,
  what: 'CPU vs Fastify + http-proxy',
  of: ours,
  against: { peer: 'fastify' },
  metric: proxyCpu,
};

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  { ...lua, where: few, loads: 'under 64 connections', bar: 0.75, stretch: 0.6 },
  { ...lua, where: many, loads: 'from 64 connections', bar: 0.6, stretch: 0.45 },
  { ...plain, where: is64, loads: '64 connections', bar: 2.6, stretch: 2.0 },
  { ...plain, where: isNot64, bar: null, stretch: null },
  { ...node, bar: 0.25, stretch: 0.15 },
  { ...luaRedis, bar: 1.0, stretch: 0.7 },
  { ...luaWhole, where: few, loads: 'under 64 connections', bar: 0.95, stretch: null },
  { ...luaWhole, where: many, loads: 'from 64 connections', bar: 0.8, stretch: null },
  { ...luaP99, where: is64, loads: '64 connections', bar: 1.2, stretch: null },
  { ...luaP99, where: isNot64, bar: null, stretch: null },
];

const notesOf = () => [
  'the whole call is proxy, Redis, writer and Postgres together. Each Redis has an append-only file, synced every second. The peers ' +
    'store nothing else: their usage stream is deleted after each measurement, unread',
];

export const { estimateSeconds, run } = comparison(peerNames, bars, notesOf);
