// What the two linters that people run on OpenAPI documents say of a document, one line per finding.

import spectral from '@stoplight/spectral-core';
import rulesets from '@stoplight/spectral-rulesets';

/** What is used of Redocly's package. Its own types, 65 000 lines, would take a quarter of the type check. */
type Redocly = {
  createConfig(config: { readonly extends: readonly string[] }): Promise<unknown>;
  lintFromString(options: {
    readonly source: string;
    readonly absoluteRef: string;
    readonly config: unknown;
  }): Promise<readonly Finding[]>;
};
type Finding = {
  readonly severity: string;
  readonly ruleId: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
};

/** Redocly's recommended rules: what `redocly lint` reports without a configuration. */
export async function redoclyFindings(document: string): Promise<string[]> {
  const redocly: Redocly = await import('@redocly/openapi-core' as string);
  const config = await redocly.createConfig({ extends: ['recommended'] });
  const findings = await redocly.lintFromString({ source: document, absoluteRef: 'openapi.json', config });
  return findings.map(
    ({ severity, ruleId, message, location }) => `${severity} ${ruleId} ${location[0]?.pointer}: ${message}`,
  );
}

/**
 * Spectral's ruleset for OpenAPI: what `spectral lint` reports with `extends: spectral:oas`. Without the rules about examples, which took
 * nine tenths of its time: Redocly also judges those of bodies, parameters and schemas, and contract.test.ts those of headers (and
 * defaults).
 */
export async function spectralFindings(document: string): Promise<string[]> {
  const linter = new spectral.Spectral();
  const rules = { 'oas3-valid-schema-example': 'off', 'oas3-valid-media-example': 'off' } as const;
  linter.setRuleset(new spectral.Ruleset({ extends: rulesets.oas, rules }));
  const findings = await linter.run(document);
  return findings.map(({ severity, code, message, path }) => `${severity} ${code} ${path.join('/')}: ${message}`);
}
