// What a team that uses Node would write: Fastify with @fastify/http-proxy, and one Redis script through ioredis before each call.
// Not type checked: it needs the packages of bench/package.json, which only a benchmark installs.

import cluster from 'node:cluster';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import httpProxy from '@fastify/http-proxy';
import fastify from 'fastify';
import { Redis } from 'ioredis';

const { port, workers, upstreamPort, redisPort, prefix, keysFile, scriptFile, service, price, freeCalls } = JSON.parse(
  process.env.BENCH_PEER,
);

const keys = new Map();
for (const line of readFileSync(keysFile, 'utf8').trimEnd().split('\n')) {
  const [id, digest, account] = line.split('\t');
  keys.set(id, { id, digest, account });
}

const redis = new Redis(redisPort, '127.0.0.1');
redis.defineCommand('charge', { numberOfKeys: 3, lua: readFileSync(scriptFile, 'utf8') });

function authenticate(header) {
  if (header === undefined || !header.startsWith('Bearer ')) return undefined;
  const colon = header.indexOf(':');
  const key = keys.get(header.slice(7, colon));
  const digest = createHash('sha256')
    .update(header.slice(colon + 1))
    .digest('hex');
  return key?.digest === digest ? key : undefined;
}

const usd = (micros) => (micros / 1e6).toFixed(6);
const problem = (status, error, message) => ({ error, message, status });

async function meter(request, reply) {
  const key = authenticate(request.headers.authorization);
  if (key === undefined) {
    return reply.code(401).send(problem(401, 'unauthorized', 'Missing or invalid API key.'));
  }
  const [code, limit, tokens, balance, free] = await redis.charge(
    `key:${key.id}`,
    `wallet:${key.account}`,
    'usage',
    price,
    freeCalls,
    `free:${service}`,
    request.id,
    key.id,
    key.account,
    service,
    request.method,
    request.url,
  );
  reply.headers({
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': Math.floor(tokens / 60_000),
    'x-ratelimit-reset': Math.ceil((limit * 60_000 - tokens) / limit / 1000),
    'x-request-id': request.id,
  });
  if (code === 1) {
    const wait = Math.ceil((60_000 - tokens) / limit / 1000);
    reply.header('retry-after', wait);
    return reply.code(429).send(problem(429, 'rate_limited', `Too many requests. Try again in ${wait} s.`));
  }
  if (code === 2) return reply.code(401).send(problem(401, 'unauthorized', 'Missing or invalid API key.'));
  if (code === 3) {
    return reply.code(402).send(problem(402, 'insufficient_balance', 'The balance does not cover the price.'));
  }
  reply.headers({
    'x-acf-amount': free === 1 ? '0' : usd(price),
    'x-acf-free-tier': String(free === 1),
    'x-acf-usage-id': request.id,
    'x-acf-balance': usd(balance),
  });
}

const app = fastify({ logger: false, keepAliveTimeout: 600_000, bodyLimit: 10 * 1024 * 1024 });
app.register(httpProxy, {
  upstream: `http://127.0.0.1:${upstreamPort}`,
  prefix: prefix.replace(/\/$/, ''),
  rewritePrefix: '',
  preHandler: meter,
  undici: { connections: 1024, pipelining: 1, keepAliveTimeout: 600_000 },
  replyOptions: {
    rewriteRequestHeaders: (_request, { authorization, ...headers }) => headers,
  },
});

// A single worker serves in this process. Several workers are started by Node's cluster module.
if (cluster.isPrimary && workers > 1) for (let worker = 0; worker < workers; worker += 1) cluster.fork();
else await app.listen({ host: '127.0.0.1', port });
