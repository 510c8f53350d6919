import type { CallerCase } from './case.ts';
import { CODINGS } from './codings.ts';
import { CONNECTIONS } from './connections.ts';
import { HEADS } from './heads.ts';
import { LENGTHS } from './lengths.ts';
import { TARGETS } from './targets.ts';

type Chapter = { readonly name: string; readonly cases: readonly CallerCase[] };

export const CALLER_CORPUS: readonly Chapter[] = [
  { name: 'lengths', cases: LENGTHS },
  { name: 'codings and chunks', cases: CODINGS },
  { name: 'request lines and fields', cases: HEADS },
  { name: 'connections', cases: CONNECTIONS },
  { name: 'targets', cases: TARGETS },
];
