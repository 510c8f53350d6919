import type { Schemas } from '../../api/client.ts';
import { readAmount } from '../shared/amount.ts';
import { sentence } from '../shared/sentence.ts';
import { maxPriceFault, maxPriceOf } from './listing-draft.ts';
import { parseTemplate } from './rules.ts';

export type Operation = Schemas['Operation'];
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const MAX_SUMMARY = 200;
const MAX_TOOL = 128;

/** An operation in the form: texts as typed. */
export type OperationDraft = {
  readonly method: string;
  readonly path: string;
  readonly tool: string;
  readonly summary: string;
  readonly price: string;
  readonly max_price: string;
  readonly input: string;
  readonly output: string;
  readonly example: string;
};

const pretty = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value, null, 2));

export const operationDraft = (operation: Operation | null): OperationDraft => ({
  method: operation?.method ?? 'GET',
  path: operation?.path ?? '/',
  tool: operation?.tool ?? '',
  summary: operation?.summary ?? '',
  price: operation?.price === undefined ? '' : String(operation.price),
  max_price: operation?.max_price === undefined ? '' : String(operation.max_price),
  input: pretty(operation?.input),
  output: pretty(operation?.output),
  example: pretty(operation?.example),
});

type OperationFaults = Partial<Record<keyof OperationDraft, string>>;

export function operationFaults(draft: OperationDraft, isMcp: boolean): OperationFaults {
  const faults: Record<string, string | null> = {
    ...(isMcp
      ? { tool: draft.tool.trim() === '' ? 'Is needed.' : tooLong(draft.tool, MAX_TOOL) }
      : {
          path: templateFault(draft.path),
          summary: draft.summary.trim() === '' ? 'Is needed.' : tooLong(draft.summary, MAX_SUMMARY),
          input: objectFault(draft.input),
          output: objectFault(draft.output),
          example: objectFault(draft.example),
        }),
    price: draft.price.trim() === '' ? null : dotted(readAmount(draft.price).fault),
    max_price: dotted(maxPriceFault(draft.max_price, draft.price)),
  };
  return Object.fromEntries(Object.entries(faults).filter((entry): entry is [string, string] => entry[1] !== null));
}

const dotted = (fault: string | null): string | null => (fault === null ? null : sentence(fault));

const tooLong = (text: string, max: number): string | null =>
  text.trim().length > max ? `Must be at most ${max} characters.` : null;

function templateFault(path: string): string | null {
  const parsed = parseTemplate(path);
  return 'fault' in parsed ? dotted(parsed.fault) : null;
}

function objectFault(text: string): string | null {
  if (text.trim() === '') return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? null
      : 'Must be a JSON object: { … }.';
  } catch (error) {
    return `Not valid JSON yet: ${error instanceof Error ? error.message : String(error)}.`;
  }
}

export function operationOf(draft: OperationDraft, isMcp: boolean): Operation {
  const summary = draft.summary.trim();
  const max = maxPriceOf(draft.max_price);
  const price = {
    ...(draft.price.trim() === '' ? {} : { price: readAmount(draft.price).usd ?? 0 }),
    ...(max === null ? {} : { max_price: max }),
  };
  if (isMcp) return { tool: draft.tool.trim(), ...(summary === '' ? {} : { summary }), ...price } as Operation;
  const json = (['input', 'output', 'example'] as const).flatMap((name) =>
    draft[name].trim() === '' ? [] : [[name, JSON.parse(draft[name]) as unknown] as const],
  );
  return { method: draft.method, path: draft.path, summary, ...price, ...Object.fromEntries(json) } as Operation;
}

/** What identifies an operation, for people and the gateway. */
export const operationName = ({ method, path, tool }: { method?: string; path?: string; tool?: string }): string =>
  tool ?? `${method} ${path}`;
