// An example request of an operation. The gateway makes the `call` of a listing with the same code.

import type { components } from '../api/schema.d.ts';

export {
  bodyOf,
  hasDotSegment,
  headersOf,
  mediaTypeOf,
  objectOf,
  type Pair,
  parametersOf,
  pathNames,
  pathOf,
  pathSamples,
  queryOf,
  REST,
} from '../../../src/catalog/operations/sample-request.ts';

export type Operation = components['schemas']['PricedOperation'];
