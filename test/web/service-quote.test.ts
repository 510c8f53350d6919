// Programs that people paste into a shell contain providers' texts. So the programs are run here.

import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Json, pythonLiteral, scriptLiteral, shellWord, wellFormed } from '../../web/src/site/service-quote.ts';
import { anyText } from '../support/any-text.ts';

const HOSTILE = [
  "'",
  "''",
  '"',
  '\\',
  '\\\\',
  "\\'",
  '$HOME',
  '$(touch /tmp/pwned)',
  '`id`',
  '!!',
  '!x',
  '*',
  '~',
  '-n',
  '--help',
  '@/etc/passwd',
  ';ls',
  '| cat',
  '&',
  '\n',
  '\r\n',
  '\t',
  'a\nb',
  '#',
  '%',
  '%s',
  '=x',
  'a=b',
  '',
  ' ',
  '{a,b}',
  "'; rm -rf ~; '",
  "' + process.exit(1) + '",
  ['$', '{process.exit(1)}'].join(''),
  '" + exec("x") + "',
  '"""',
  "'''",
  '\u2028',
  '\u2029',
  '\u0000',
  '\u007f',
  '\u0085',
  '\ufeff',
  '😀',
  '\ud800',
  '__proto__',
  'constructor',
  '</script>',
  'é',
  '\b\f',
];
const text = fc.oneof(fc.constantFrom(...HOSTILE), anyText({ maxLength: 30 }), fc.string());
const value = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    text,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('json'), { maxLength: 5 }),
    entries(text, tie('json')),
  ) as fc.Arbitrary<Json>,
})).json;

/** Objects as JSON makes them: `__proto__` is a name as any other. */
function entries(names: fc.Arbitrary<string>, values: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  return fc
    .array(fc.tuple(names, values), { maxLength: 5 })
    .map(
      (pairs) =>
        JSON.parse(`{${pairs.map(([name, its]) => `${JSON.stringify(name)}:${JSON.stringify(its)}`)}}`) as Json,
    );
}

const sample = <T>(arbitrary: fc.Arbitrary<T>, count: number): T[] =>
  fc.sample(arbitrary, { numRuns: count, seed: 20261122 });
/** As it can be written in UTF-8. */
const clean = (json: Json): Json =>
  JSON.parse(wellFormed(JSON.stringify(json).replace(/\\ud[89a-f]\w\w/g, '\ufffd'))) as Json;

describe('a literal stays one value, whatever it contains', () => {
  it('in a shell', () => {
    const words = [...HOSTILE, ...sample(text, 1_000)];
    const script = `printf '%s\\0' ${words.map(shellWord).join(' ')}`;
    const printed = execFileSync('sh', { input: script }).toString().split('\0');
    expect(printed.slice(0, -1)).toEqual(words.map((word) => wellFormed(word).replaceAll('\0', '')));
  });

  it('in JavaScript', () => {
    const values = [...HOSTILE, ...sample(value, 1_000)];
    const script = `console.log(JSON.stringify([\n${values.map((its) => `${scriptLiteral(its, '  ')},\n`).join('')}]))`;
    const printed = execFileSync(process.execPath, ['--input-type=module', '-'], { input: script, maxBuffer: 2 ** 26 });
    expect(JSON.stringify(JSON.parse(printed.toString()))).toBe(JSON.stringify(values.map(clean)));
  });

  it('in Python', () => {
    const values = [...HOSTILE, ...sample(value, 1_000)];
    const script = `import json\nprint(json.dumps([\n${values.map((its) => `${pythonLiteral(its, '  ')},\n`).join('')}]))`;
    const printed = execFileSync('python3', ['-'], { input: script, maxBuffer: 2 ** 26 });
    expect(JSON.parse(printed.toString())).toEqual(JSON.parse(JSON.stringify(values.map(clean))));
  });
});
