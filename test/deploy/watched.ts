// What deploy/ and docs/runbooks ask of a running Tollgate: alerts, queries of the dashboard, commands of the runbooks.

import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';

export const PROMETHEUS = 'deploy/prometheus';
const DASHBOARDS = 'deploy/grafana/dashboards';
export const RUNBOOKS = 'docs/runbooks';

type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
};

export function readRules(): readonly Rule[] {
  const file: { groups: { rules: Rule[] }[] } = parse(readFileSync(`${PROMETHEUS}/alerts.yml`, 'utf8'));
  return file.groups.flatMap(({ rules }) => rules);
}

type AlertCase = { readonly alertname: string; readonly exp_alerts: readonly object[] };

export function readAlertCases(): readonly AlertCase[] {
  const file: { tests: { alert_rule_test: AlertCase[] }[] } = parse(
    readFileSync(`${PROMETHEUS}/alerts.test.yml`, 'utf8'),
  );
  return file.tests.flatMap((test) => test.alert_rule_test);
}

type Panel = {
  readonly id: number;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly title: string;
  readonly type: string;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly expr: string }[];
};
type Variable = { readonly name: string; readonly query?: string | { readonly query: string } };
type Dashboard = {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
};

export function readDashboards(): readonly Dashboard[] {
  const files = readdirSync(DASHBOARDS).filter((name) => name.endsWith('.json'));
  return files.map((name) => JSON.parse(readFileSync(`${DASHBOARDS}/${name}`, 'utf8')) as Dashboard);
}

export const queriesOf = ({ panels, templating }: Dashboard): readonly string[] => [
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...templating.list.flatMap(({ query }) => (typeof query === 'object' ? [query.query] : [])),
];

/** The names of the runbooks. */
export const runbookNames = (): readonly string[] =>
  readdirSync(RUNBOOKS)
    .filter((name) => name !== 'README.md')
    .map((name) => name.replace(/\.md$/, ''));

/** The lines of a runbook's blocks of commands, without comments. */
export function runbookCommands(name: string): readonly string[] {
  const text = readFileSync(`${RUNBOOKS}/${name}.md`, 'utf8');
  return Array.from(text.matchAll(/^```sh\n([\s\S]*?)^```/gm), ([, block = '']) => block.split('\n'))
    .flat()
    .map((line) => line.replace(/ +# .*$/, ''))
    .filter((line) => line !== '');
}

const WORDS = /^(and|or|unless|on|ignoring|by|without|group_left|group_right|bool|offset)$/;

/** The metrics that a query in PromQL reads: its identifiers, without functions, keywords, labels, ranges and variables. */
export function metricsOf(query: string): readonly string[] {
  const bare = query
    .replace(/"(?:[^"\\]|\\.)*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)/g, '')
    .replace(/^label_values\((.*),[^,]*\)$/, '$1')
    .replace(/\$\w+/g, '');
  return Array.from(bare.matchAll(/\b[a-zA-Z_]\w*\b(?!\s*\()/g), ([name]) => name).filter((name) => !WORDS.test(name));
}
