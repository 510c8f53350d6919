import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('docs/dependencies.md names every package that package.json requires', () => {
  const page = readFileSync('docs/dependencies.md', 'utf8');
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  const names = Object.keys({ ...dependencies, ...devDependencies });
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
