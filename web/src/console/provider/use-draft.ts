import { useState } from 'preact/hooks';
import { ApiFailure } from '../../api/client.ts';
import { showFirstFault } from '../shared/first-fault.ts';
import { sentence } from '../shared/sentence.ts';
import { afterPointer } from './after-pointer.ts';
import type { Draft } from './listing-draft.ts';

type Field<D> = keyof D & string;
export type FaultsOf<D> = Readonly<Partial<Record<Field<D>, string>>>;

/** Default: the fields of a listing. */
export type DraftForm<D = Draft> = {
  readonly draft: D;
  readonly set: (change: Partial<D>) => void;
  /** The error at a field: a fault in the text, once the writer has left the field, or the gateway's refusal. */
  readonly errorOf: (field: Field<D>) => string | undefined;
  readonly touch: (field: Field<D>) => void;
  /** Attributes of a text field. */
  readonly bind: (field: Field<D>) => {
    readonly name: string;
    readonly value: string;
    readonly error: string | undefined;
    readonly onInput: (event: { readonly currentTarget: { readonly value: string } }) => void;
    readonly onBlur: () => void;
  };
  readonly busy: boolean;
  /** A failure that belongs to no field. */
  readonly failure: unknown;
  /** Sends the form, or shows what is wrong with it. @returns whether it was sent and accepted */
  readonly submit: (send: (draft: D) => Promise<void>) => Promise<boolean>;
  readonly reset: (draft: D) => void;
};

/**
 * The state of a provider's form: what was entered, what is wrong with it, and how the last attempt to send it ended.
 *
 * @param faultsOf the faults of a draft, by field; called at each keystroke
 */
export function useDraft<D extends object>(initial: D, faultsOf: (draft: D) => FaultsOf<D>): DraftForm<D> {
  const [draft, setDraft] = useState(initial);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [refused, setRefused] = useState<Refused>({});
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const faults = faultsOf(draft);
  const touch = (field: string): void => afterPointer(() => setTouched((before) => new Set(before).add(field)));
  const set = (change: Partial<D>): void => {
    setDraft((before) => ({ ...before, ...change }));
    setRefused((before) => Object.fromEntries(Object.entries(before).filter(([field]) => !(field in change))));
  };
  const errorOf = (field: Field<D>): string | undefined =>
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
      onInput: ({ currentTarget }) => set({ [field]: currentTarget.value } as Partial<D>),
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
        const at = fieldOf(error, draft);
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

type Refused = Readonly<Record<string, string>>;

/** A refusal begins with the name of its field: `endpoint: must …`. Null for any other failure. */
function fieldOf(error: unknown, draft: object): Refused | null {
  if (!(error instanceof ApiFailure) || error.status !== 400) return null;
  const [, field = '', rest = '', text = ''] = /^([a-z_]+)((?:\.[^:]+)?): ([\s\S]+)$/.exec(error.message) ?? [];
  if (!Object.hasOwn(draft, field)) return null;
  return { [field]: rest === '' ? sentence(text) : `${rest.slice(1)} ${text}` };
}
