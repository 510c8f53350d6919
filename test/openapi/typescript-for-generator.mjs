// openapi-typescript 7 makes its types with the JavaScript API of TypeScript 5. TypeScript 7, our compiler, has none, and two packages
// of that name would both want to be `tsc`. @ts-morph/common is TypeScript 5 as a library, without programs, and the generator gets that.
// Used as `node --import`.

import { register } from 'node:module';

const hook = `export const resolve = (specifier, context, next) =>
  specifier === 'typescript' && context.parentURL?.includes('/openapi-typescript/')
    ? { url: 'data:text/javascript,' + encodeURIComponent(
        'import { createRequire } from "node:module";' +
        'export default createRequire(' + JSON.stringify(context.parentURL) + ')("@ts-morph/common").ts;'),
        shortCircuit: true }
    : next(specifier, context);`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
