import './key-form.css';
import { Check, Select, TextArea, TextInput } from '../../design/more.ts';
import { type Faults, type KeyDraft, PERIODS } from './draft.ts';

type Props = {
  readonly draft: KeyDraft;
  readonly faults: Faults;
  readonly set: (change: Partial<KeyDraft>) => void;
  /** What an empty rate limit means. */
  readonly ifEmpty: string;
  /** Services to choose from: those that the account has called. */
  readonly called?: readonly { readonly service_id: string; readonly service_name: string }[];
};

export const LabelField = ({ draft, set }: Pick<Props, 'draft' | 'set'>) => (
  <TextInput
    label="Label"
    placeholder="research agent"
    maxLength={100}
    autocomplete="off"
    value={draft.label}
    onInput={(event) => set({ label: event.currentTarget.value })}
  />
);

/**
 * @param isGiven  the key already has a budget, whose period stays
 * @param isNeeded a key without one would be another kind of key
 */
export const BudgetFields = ({
  draft,
  faults,
  set,
  isGiven = false,
  isNeeded = false,
}: Omit<Props, 'ifEmpty'> & { readonly isGiven?: boolean; readonly isNeeded?: boolean }) => (
  <div class="stack-tight">
    <div class="key-budget-fields">
      <TextInput
        label={isNeeded ? 'Budget in US dollars (needed)' : 'Budget in US dollars'}
        placeholder={isGiven || !isNeeded ? 'none' : '5.00'}
        required={isNeeded}
        inputMode="decimal"
        autocomplete="off"
        value={draft.amount}
        error={faults.amount}
        onInput={(event) => set({ amount: event.currentTarget.value })}
      />
      <Select
        label="Period"
        value={draft.period}
        disabled={isGiven}
        options={PERIODS}
        onChange={(event) => {
          const period = PERIODS.find(([value]) => value === event.currentTarget.value)?.[0];
          if (period !== undefined) set({ period });
        }}
      />
    </div>
    <p class="field-hint">
      {isGiven
        ? 'An empty amount ends the budget. For another period, end it and then give a new one, which counts from 0.'
        : 'It bounds what the key and all keys below it spend together. Periods begin at 00:00 UTC, weeks on Monday.'}
    </p>
  </div>
);

export const RateField = ({ draft, faults, set, ifEmpty }: Props) => (
  <TextInput
    label="Requests a minute"
    inputMode="numeric"
    autocomplete="off"
    placeholder={ifEmpty}
    value={draft.rateLimit}
    error={faults.rateLimit}
    onInput={(event) => set({ rateLimit: event.currentTarget.value })}
  />
);

/** Limits that most keys do not need. */
export const MoreLimits = (props: Props) => {
  const { draft, faults, set, called = [] } = props;
  const toggle = (id: string): void => {
    const others = draft.services.split('\n').filter((line) => line.trim() !== '' && !line.includes(id));
    set({ services: (draft.services.includes(id) ? others : [...others, id]).join('\n') });
  };
  return (
    <>
      <RateField {...props} />
      <TextInput
        label="Most that one call may cost, in US dollars"
        inputMode="decimal"
        autocomplete="off"
        placeholder="any price"
        value={draft.maxPrice}
        error={faults.maxPrice}
        onInput={(event) => set({ maxPrice: event.currentTarget.value })}
      />
      <TextInput
        label="Expires"
        type="datetime-local"
        hint="In your time zone. Empty: never."
        value={draft.expires}
        onInput={(event) => set({ expires: event.currentTarget.value })}
      />
      {called.length > 0 && (
        <fieldset class="stack-tight">
          <legend class="field-label">Only these services</legend>
          {called.map(({ service_id: id, service_name: name }) => (
            <Check key={id} label={name} checked={draft.services.includes(id)} onChange={() => toggle(id)} />
          ))}
        </fieldset>
      )}
      <TextArea
        label={called.length > 0 ? 'Only these services, by id' : 'Only these services'}
        hint="The address or the id of each, one a line. Empty: all services."
        mono
        rows={3}
        spellcheck={false}
        value={draft.services}
        error={faults.services}
        onInput={(event) => set({ services: event.currentTarget.value })}
      />
    </>
  );
};
