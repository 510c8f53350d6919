// @ts-check
import { register } from 'node:module';

// For `import './register.mjs'` and `node --import`: from now on this process loads TypeScript without Vitest.
register('./load-typescript.mjs', import.meta.url);
