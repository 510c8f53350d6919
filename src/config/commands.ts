import { ConfigError } from './config.ts';

/** The commands of `main.js`: how each is written, and what `main.js help` says about it. */
const COMMANDS = {
  all: { usage: 'all', does: 'gateway and writer, a process each; the same without a command' },
  gateway: { usage: 'gateway', does: 'serves calls, the API and the pages' },
  writer: { usage: 'writer', does: 'brings calls into Postgres, and does the work that no request does' },
  migrate: { usage: 'migrate', does: 'applies the migrations and prepares Redis, then ends' },
  'create-admin': {
    usage: 'create-admin [--label TEXT]',
    does: 'opens an account with an admin key, and prints the key. It needs DATABASE_URL only',
  },
  'rebuild-sums': {
    usage: 'rebuild-sums',
    does: 'rebuilds the sums of calls from the calls, while writers go on. It needs DATABASE_URL only',
  },
  reshard: {
    usage: 'reshard [--take-back]',
    does: 'takes the data out of Redis, for another number of shards or another kind of Redis; or takes that back',
  },
  'accept-postgres': {
    usage: 'accept-postgres [--yes DIGEST]',
    does: 'lists what a Postgres that is older than Redis lacks, and goes on with it once you have accepted that',
  },
  help: { usage: 'help', does: 'prints this' },
} as const;

type Command = keyof typeof COMMANDS;

const SPELLINGS: Readonly<Record<string, Command>> = { '--help': 'help', '-h': 'help' };

/** The command that the first argument of `main.js` names; `all` without one. An unknown command throws `ConfigError`. */
export function parseCommand(argument: string | undefined): Command {
  const name = SPELLINGS[argument ?? ''] ?? argument ?? 'all';
  if (Object.hasOwn(COMMANDS, name)) return name as Command;
  const known = Object.keys(COMMANDS).join(', ');
  throw new ConfigError([`the command must be one of ${known}, but it is ${argument}: see main.js help`]);
}

/** What `main.js help` prints. */
export function helpText(): string {
  const width = Math.max(...Object.values(COMMANDS).map(({ usage }) => usage.length));
  const lines = Object.values(COMMANDS).map(({ usage, does }) => `  ${usage.padEnd(width)}  ${does}`);
  return [
    'node dist/main.js [command]',
    '',
    ...lines,
    '',
    'Settings are environment variables: docs/operating.md has a table of them.',
  ].join('\n');
}
