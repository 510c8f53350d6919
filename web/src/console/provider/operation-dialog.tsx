import { useState } from 'preact/hooks';
import { type Cost, operationCost } from '../../cost.ts';
import { Button } from '../../design/index.ts';
import { Dialog, Select, TextArea, TextInput } from '../../design/more.ts';
import { readAmount } from '../shared/amount.ts';
import { showFirstFault } from '../shared/first-fault.ts';
import { afterPointer } from './after-pointer.ts';
import { maxPriceOf } from './listing-draft.ts';
import {
  METHODS,
  type Operation,
  type OperationDraft,
  operationDraft,
  operationFaults,
  operationOf,
} from './operation-draft.ts';
import { callPrice } from './service-words.tsx';

/** One operation as a form. @param operation  null: a new one */
export function OperationDialog({
  operation,
  isMcp,
  listing,
  isTaken,
  onDone,
  onClose,
}: {
  readonly operation: Operation | null;
  readonly isMcp: boolean;
  /** The price of the listing's calls. */
  readonly listing: Cost;
  readonly isTaken: (operation: Operation) => boolean;
  readonly onDone: (operation: Operation) => void;
  readonly onClose: () => void;
}) {
  const [draft, setDraft] = useState(operationDraft(operation));
  const [isLeaving, setLeaving] = useState(false);
  const isTyped = JSON.stringify(draft) !== JSON.stringify(operationDraft(operation));
  const close = (): void => (isTyped ? setLeaving(true) : onClose());
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const faults = operationFaults(draft, isMcp);
  const [taken, setTaken] = useState(false);
  const bind = (field: keyof OperationDraft) => ({
    name: field,
    value: draft[field],
    error: touched.has(field) ? faults[field] : undefined,
    onInput: ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) => {
      setTaken(false);
      setDraft({ ...draft, [field]: currentTarget.value });
      // JSON is checked while it is typed, other fields when the writer leaves them.
      if (field === 'input' || field === 'output' || field === 'example') setTouched(new Set(touched).add(field));
    },
    onBlur: () => afterPointer(() => setTouched((before) => new Set(before).add(field))),
  });
  const done = (): void => {
    setTouched(new Set(Object.keys(draft)));
    const made = Object.keys(faults).length > 0 ? null : operationOf(draft, isMcp);
    if (made !== null && isTaken(made)) setTaken(true);
    else if (made !== null) {
      onDone(made);
      return;
    }
    showFirstFault();
  };
  const price = draft.price.trim() === '' ? null : readAmount(draft.price).usd;
  const own = { price: price ?? undefined, max_price: maxPriceOf(draft.max_price) ?? undefined };
  const isOwn = own.price !== undefined || own.max_price !== undefined;
  const takenError = taken ? 'There is such an operation already.' : undefined;
  const what = isMcp ? 'tool' : 'operation';
  return (
    <Dialog
      title={operation === null ? `Add ${isMcp ? 'a tool' : 'an operation'}` : `Edit ${what}`}
      onClose={isLeaving ? () => setLeaving(false) : close}
      actions={
        isLeaving ? (
          <>
            <span class="dialog-question">Throw away what you typed?</span>
            <Button onClick={() => setLeaving(false)}>Go on typing</Button>
            <Button kind="danger" onClick={onClose}>
              Throw away
            </Button>
          </>
        ) : (
          <>
            <Button onClick={close}>Cancel</Button>
            <Button kind="primary" onClick={done}>
              {operation === null ? `Add ${what}` : `Change ${what}`}
            </Button>
          </>
        )
      }
    >
      {isMcp ? (
        <TextInput {...bind('tool')} label="Tool" mono autocomplete="off" error={bind('tool').error ?? takenError} />
      ) : (
        <div class="test-line">
          <Select
            label="Method"
            value={draft.method}
            options={METHODS.map((name) => [name, name] as const)}
            onChange={(event) => setDraft({ ...draft, method: event.currentTarget.value })}
          />
          <TextInput
            {...bind('path')}
            label="Path"
            mono
            autocomplete="off"
            spellcheck={false}
            error={bind('path').error ?? takenError}
            hint="{name} stands for one segment, a last * for the rest."
          />
        </div>
      )}
      <TextInput {...bind('summary')} label={isMcp ? 'Summary (optional)' : 'Summary'} autocomplete="off" />
      <TextInput
        {...bind('price')}
        label="Price in US dollars (optional)"
        inputmode="decimal"
        autocomplete="off"
        placeholder={String(listing.price)}
        hint={
          isOwn
            ? `Buyers see: ${callPrice(operationCost(own, listing))}`
            : `Without one, that of the listing: ${callPrice(listing)}`
        }
      />
      <TextInput
        {...bind('max_price')}
        label="Maximum in US dollars (optional)"
        inputmode="decimal"
        autocomplete="off"
        placeholder="none"
        hint="Your service then answers with the header X-ACF-Charge: 0.0013, in US dollars and up to this. Without it a call costs the price."
      />
      {!isMcp && (
        <details class="more-fields" open={draft.input !== '' || draft.output !== ''}>
          <summary>Schemas and example</summary>
          <div class="stack">
            <TextArea
              {...bind('input')}
              label="JSON Schema of the request"
              mono
              rows={5}
              spellcheck={false}
              hint="An object with the properties path, query, headers and body, so that agents know where each value goes."
            />
            <TextArea {...bind('output')} label="JSON Schema of the response" mono rows={4} spellcheck={false} />
            <TextArea
              {...bind('example')}
              label="Example"
              mono
              rows={4}
              spellcheck={false}
              hint="An object with query, body and response."
            />
          </div>
        </details>
      )}
    </Dialog>
  );
}
