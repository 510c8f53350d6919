import type {
  ComponentChildren,
  PartialInputHTMLAttributes,
  PartialSelectHTMLAttributes,
  TextareaHTMLAttributes,
} from 'preact';
import { useId } from 'preact/hooks';

type Labelled = {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly error?: string | null | undefined;
};

/** A label with its input, hint and error. `children` gets the ids, so that screen readers read hint and error with the input. */
export function Field({
  label,
  hint,
  error,
  children,
}: Labelled & {
  readonly children: (ids: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': boolean;
  }) => ComponentChildren;
}) {
  const id = useId();
  const hasError = error !== undefined && error !== null && error !== '';
  const described = [hint === undefined ? '' : `${id}-hint`, hasError ? `${id}-error` : ''].filter(
    (part) => part !== '',
  );
  return (
    <div class="field">
      <label class="field-label" for={id}>
        {label}
      </label>
      {children({ id, 'aria-describedby': described.join(' ') || undefined, 'aria-invalid': hasError })}
      {hint !== undefined && (
        <span class="field-hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {hasError && (
        <span class="field-error" id={`${id}-error`} role="alert">
          {error}
        </span>
      )}
    </div>
  );
}

export function TextInput({
  label,
  hint,
  error,
  mono = false,
  ...rest
}: Labelled & { readonly mono?: boolean } & Omit<PartialInputHTMLAttributes<HTMLInputElement>, 'class' | 'label'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => <input {...(rest as object)} {...ids} class={mono ? 'input input-mono' : 'input'} />}
    </Field>
  );
}

export function TextArea({
  label,
  hint,
  error,
  mono = false,
  ...rest
}: Labelled & { readonly mono?: boolean } & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'class' | 'label'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => <textarea {...rest} {...ids} class={mono ? 'input input-mono' : 'input'} />}
    </Field>
  );
}

export function Select({
  label,
  hint,
  error,
  options,
  ...rest
}: Labelled & {
  readonly options: readonly (readonly [value: string, text: string])[];
} & Omit<PartialSelectHTMLAttributes<HTMLSelectElement>, 'class' | 'label'>) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <select {...(rest as object)} {...ids} class="input">
          {options.map(([value, text]) => (
            <option key={value} value={value} selected={value === rest.value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Check({
  label,
  ...rest
}: { readonly label: ComponentChildren } & Omit<PartialInputHTMLAttributes<HTMLInputElement>, 'type' | 'label'>) {
  return (
    <label class="check">
      <input {...(rest as object)} type="checkbox" />
      <span>{label}</span>
    </label>
  );
}
