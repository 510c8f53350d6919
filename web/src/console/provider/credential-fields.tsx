import type { Schemas } from '../../api/client.ts';
import { Button } from '../../design/index.ts';
import { Check, TextInput } from '../../design/more.ts';
import type { PairDraft } from './listing-draft.ts';
import { CREDENTIAL_HEADERS, MAX_UPSTREAM_HEADERS, MAX_UPSTREAM_PARAMETERS } from './rules.ts';
import type { DraftForm } from './use-draft.ts';

type Props = { readonly form: DraftForm; readonly service: Schemas['Service'] | null };

/** How the service recognises the gateway, and which credentials it asks callers for. */
export function CredentialFields(props: Props) {
  const { draft, set, errorOf } = props.form;
  const error = errorOf('signed') ?? errorOf('forward_headers');
  return (
    <fieldset class="form-part">
      <legend>Credentials</legend>
      <AddedPairs {...props} added={HEADERS} />
      <AddedPairs {...props} added={QUERY} />
      <div class="stack-tight">
        <Check
          name="signed"
          label="Sign each call, so that the service can tell the gateway from others"
          checked={draft.signed}
          onChange={(event) => set({ signed: event.currentTarget.checked })}
        />
        {draft.signed && props.service?.signed !== true && (
          <span class="field-hint">The signing secret is shown once, after you save.</span>
        )}
        {!draft.signed && props.service?.signed === true && (
          <span class="field-hint">Saving this forgets the secret: calls are no longer signed.</span>
        )}
      </div>
      <details class="more-fields" open={draft.forward_headers.length > 0}>
        <summary>Headers that callers may pass on to you</summary>
        <p class="field-hint">
          For services where each caller has credentials of their own. A header reaches you only if the caller agrees.
        </p>
        <div class="check-grid">
          {CREDENTIAL_HEADERS.map((name) => (
            <Check
              key={name}
              label={<code>{name}</code>}
              checked={draft.forward_headers.includes(name)}
              onChange={(event) =>
                set({
                  forward_headers: event.currentTarget.checked
                    ? [...draft.forward_headers, name]
                    : draft.forward_headers.filter((other) => other !== name),
                })
              }
            />
          ))}
        </div>
      </details>
      {error !== undefined && (
        <span class="field-error" role="alert">
          {error}
        </span>
      )}
    </fieldset>
  );
}

/** What the gateway may add to each call, and its name here. */
type Added = {
  readonly field: 'upstream_headers' | 'upstream_query';
  readonly title: string;
  readonly hint: string;
  readonly placeholder: string;
  readonly max: number;
  /** Singular, as in 'Add a header'. */
  readonly noun: string;
  /** How a stored value is shown. */
  readonly shown: (name: string) => string;
};
const HEADERS: Added = {
  field: 'upstream_headers',
  title: 'Headers that the gateway adds to each call',
  hint: 'Such as the key of your own API. Values are encrypted, and nobody can read them again, you included.',
  placeholder: 'X-Api-Key',
  max: MAX_UPSTREAM_HEADERS,
  noun: 'header',
  shown: (name) => `${name}: ••••••`,
};
const QUERY: Added = {
  field: 'upstream_query',
  title: 'Parameters that the gateway adds to the query of each call',
  hint: 'For an API that takes its key in the URL. They are encrypted, too, and take the place of parameters of callers.',
  placeholder: 'api_key',
  max: MAX_UPSTREAM_PARAMETERS,
  noun: 'parameter',
  shown: (name) => `${name}=••••••`,
};

/** Names are shown, values never: they can only be replaced all together. */
function AddedPairs({ form, service, added }: Props & { readonly added: Added }) {
  const { field, title, hint, placeholder, max, noun, shown } = added;
  const pairs = form.draft[field];
  const stored = service?.[field] ?? [];
  const set = (next: readonly PairDraft[] | null): void => form.set({ [field]: next });
  const change = (at: number, part: Partial<PairDraft>): void =>
    set((pairs ?? []).map((pair, index) => (index === at ? { ...pair, ...part } : pair)));
  const error = form.errorOf(field);
  const Noun = noun[0]?.toUpperCase() + noun.slice(1);
  return (
    <div class="stack-tight">
      <span class="field-label">{title}</span>
      <span class="field-hint">{hint}</span>
      {pairs === null && stored.length > 0 && (
        <div class="row">
          {stored.map((name) => (
            <code key={name} class="header-name">
              {shown(name)}
            </code>
          ))}
          <Button small onClick={() => set(stored.map((name) => ({ name, value: '' })))}>
            Replace all
          </Button>
          <Button small kind="quiet" onClick={() => set([])}>
            Remove all
          </Button>
        </div>
      )}
      {pairs !== null && stored.length > 0 && (
        <div class="row small">
          <span>
            {pairs.length === 0 ? 'Saving removes' : 'Saving replaces'} all of: {stored.join(', ')}.
          </span>
          <Button small kind="quiet" onClick={() => set(null)}>
            Keep them
          </Button>
        </div>
      )}
      {(pairs ?? []).map(({ name, value }, at) => (
        <div key={at} class="header-line">
          <TextInput
            label={`${Noun} ${at + 1}`}
            mono
            autocomplete="off"
            spellcheck={false}
            placeholder={placeholder}
            value={name}
            onInput={(event) => change(at, { name: event.currentTarget.value.trim() })}
            onBlur={() => name !== '' && value !== '' && form.touch(field)}
          />
          <TextInput
            label={`Value of ${noun} ${at + 1}`}
            type="password"
            mono
            autocomplete="off"
            value={value}
            onInput={(event) => change(at, { value: event.currentTarget.value })}
            onBlur={() => form.touch(field)}
          />
          <Button
            kind="quiet"
            aria-label={`Remove ${noun} ${at + 1}`}
            onClick={() => {
              const left = (pairs ?? []).filter((_, index) => index !== at);
              set(left.length === 0 && stored.length === 0 ? null : left);
            }}
          >
            ✕
          </Button>
        </div>
      ))}
      {(pairs !== null || stored.length === 0) && (pairs?.length ?? 0) < max && (
        <div>
          <Button small onClick={() => set([...(pairs ?? []), { name: '', value: '' }])}>
            Add a {noun}
          </Button>
        </div>
      )}
      {error !== undefined && (
        <span class="field-error" role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
