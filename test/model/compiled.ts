// The model as one native module. Vitest would look up each import of a module anew at each use, and the explorer uses them a
// million times a second.

import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

type Compiled = Pick<typeof import('./checks.ts'), 'rulesOf'> &
  Pick<typeof import('./explorer.ts'), 'explore'> &
  Pick<typeof import('./scenarios.ts'), 'SCENARIOS'>;

const ENTRY = 'model';

export async function compileModel(): Promise<Compiled> {
  const from = (name: string): string => JSON.stringify(fileURLToPath(new URL(name, import.meta.url)));
  const code = `export { rulesOf } from ${from('./checks.ts')};
    export { explore } from ${from('./explorer.ts')};
    export { SCENARIOS } from ${from('./scenarios.ts')};`;
  const built = await rolldown({
    input: ENTRY,
    platform: 'node',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === ENTRY ? id : null),
        load: (id) => (id === ENTRY ? code : null),
      },
    ],
  });
  const { output } = await built.generate({ format: 'esm' });
  await built.close();
  return import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(output[0].code)}`);
}
