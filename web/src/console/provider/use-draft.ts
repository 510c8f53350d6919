import { useState } from 'preact/hooks';
import { ApiFailure } from '../../api/client.ts';
import { sentence } from '../shared/sentence.ts';
import { afterPointer } from './after-pointer.ts';
import { type Draft, type DraftField, EMPTY_DRAFT, type Faults, faultsOf } from './draft.ts';

export type DraftForm = {
  readonly draft: Draft;
  readonly set: (change: Partial<Draft>) => void;
  /** What to say at a field: what is wrong with what was typed, once its writer has left it, or what the gateway refused. */
  readonly errorOf: (field: DraftField) => string | undefined;
  readonly touch: (field: DraftField) => void;
  /** Attributes of a text field. */
  readonly bind: (field: DraftField) => {
    readonly name: string;
    readonly value: string;
    readonly error: string | undefined;
    readonly onInput: (event: { readonly currentTarget: { readonly value: string } }) => void;
    readonly onBlur: () => void;
  };
  readonly busy: boolean;
  /** A failure that belongs to no field. */
  readonly failure: unknown;
  /** Sends the form, if nothing is wrong with it; otherwise shows what is. @returns whether it was sent and accepted */
  readonly submit: (send: (draft: Draft) => Promise<void>) => Promise<boolean>;
  readonly reset: (draft: Draft) => void;
};

/** A form of a listing: what is in it, what is wrong with it, and how sending it ended. */
export function useDraft(initial: Draft): DraftForm {
  const [draft, setDraft] = useState(initial);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Faults>({});
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const faults = faultsOf(draft);
  const touch = (field: string): void => afterPointer(() => setTouched((before) => new Set(before).add(field)));
  const set = (change: Partial<Draft>): void => {
    setDraft((before) => ({ ...before, ...change }));
    setRefused((before) => Object.fromEntries(Object.entries(before).filter(([field]) => !(field in change))));
  };
  const errorOf = (field: DraftField): string | undefined =>
    (touched.has(field) ? faults[field] : undefined) ?? refused[field];
  return {
    draft,
    set,
    errorOf,
    touch,
    busy,
    failure,
    bind: (field) => ({
      name: field,
      value: String(draft[field]),
      error: errorOf(field),
      onInput: ({ currentTarget }) => set({ [field]: currentTarget.value }),
      onBlur: () => touch(field),
    }),
    reset: (next) => {
      setDraft(next);
      setTouched(new Set());
      setRefused({});
      setFailure(null);
    },
    submit: async (send) => {
      setTouched(new Set(Object.keys(draft)));
      setFailure(null);
      if (Object.keys(faults).length > 0) {
        showFirstFault();
        return false;
      }
      setBusy(true);
      try {
        await send(draft);
        return true;
      } catch (error) {
        const at = fieldOf(error);
        if (at === null) setFailure(error);
        else {
          setRefused(at);
          showFirstFault();
        }
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}

const SHOWN = new Set(Object.keys(EMPTY_DRAFT));

/** A refusal begins with the name of its field: `endpoint: must …`. Null for any other failure. */
function fieldOf(error: unknown): Faults | null {
  if (!(error instanceof ApiFailure) || error.status !== 400) return null;
  const [, field = '', rest = '', text = ''] = /^([a-z_]+)((?:\.[^:]+)?): ([\s\S]+)$/.exec(error.message) ?? [];
  if (!SHOWN.has(field)) return null;
  return { [field]: rest === '' ? sentence(text) : `${rest.slice(1)} ${text}` };
}

/** After the errors are in the page: the first of them comes into view, and its field has the focus. */
function showFirstFault(): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>('.listing-form [aria-invalid="true"]')?.focus());
}
