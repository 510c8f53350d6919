// Reads compose.yaml as `docker compose` does: variables first, then YAML with its merged keys.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

type ComposeService = {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[] | Readonly<Record<string, unknown>>;
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly stop_grace_period?: string;
  readonly restart?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly privileged?: boolean;
  readonly security_opt?: readonly string[];
  readonly deploy?: { readonly resources?: { readonly limits?: { readonly memory?: string; readonly pids?: number } } };
};

type ComposeFile = {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
};

/** `${NAME}`, `${NAME:-default}`, `${NAME:?message}`; the innermost one first. */
const VARIABLE = /\$\{(?<name>[A-Z_]+)(?:(?<kind>:-|:\?)(?<rest>[^${}]*))?\}/;

/** @throws for a variable that is required and empty, as Compose does */
export function interpolate(text: string, env: Readonly<Record<string, string>>): string {
  for (;;) {
    const match = VARIABLE.exec(text);
    if (match === null) return text;
    const { name = '', kind, rest = '' } = match.groups ?? {};
    const value = env[name] || (kind === ':-' ? rest : '');
    if (value === '' && kind === ':?') throw new Error(`${name} ${rest}`);
    // A function, because `$` in a replacement text has a meaning of its own.
    text = text.replace(match[0], () => value);
  }
}

export const composeText = (): string => readFileSync('compose.yaml', 'utf8');

export const readCompose = (env: Readonly<Record<string, string>>): ComposeFile =>
  parse(interpolate(composeText(), env), { merge: true });

/** The assignments of a file for `env_file`, such as `.env.example`. */
export function readEnv(file: string): Record<string, string> {
  const lines = readFileSync(file, 'utf8').split('\n');
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value ?? '']];
    }),
  );
}

/** What a container gets: a name without a value is taken from `.env`, and left out where it is not there. */
export const environmentOf = (service: ComposeService, env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(service.environment ?? {}).flatMap(([name, value]) => {
      const given = value ?? env[name];
      return given === undefined ? [] : [[name, String(given)]];
    }),
  );

/** `1m30s` → 90 */
export function secondsOf(duration: string): number {
  const match = /^(?:(\d+)m)?(?:(\d+)s)?$/.exec(duration);
  if (match === null) throw new Error(`${duration} is not a duration in minutes and seconds`);
  return Number(match[1] ?? 0) * 60 + Number(match[2] ?? 0);
}
