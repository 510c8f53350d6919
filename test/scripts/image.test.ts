import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n');

it('the build context of the image has everything that the build copies, and nothing else', () => {
  const copied = linesOf('Dockerfile').flatMap((line) => {
    const [command, ...words] = line.split(/\s+/);
    return command === 'COPY' && !words[0]?.startsWith('--from') ? words.slice(0, -1) : [];
  });
  const sent = linesOf('.dockerignore').flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));
  expect(sent.toSorted()).toEqual([...new Set(copied)].toSorted());
});
