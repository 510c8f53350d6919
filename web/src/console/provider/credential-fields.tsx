import type { Schemas } from '../../api/client.ts';
import { Button, Check, TextInput } from '../../design/index.ts';
import type { HeaderDraft } from './draft.ts';
import { CREDENTIAL_HEADERS, MAX_UPSTREAM_HEADERS } from './rules.ts';
import type { DraftForm } from './use-draft.ts';

type Props = { readonly form: DraftForm; readonly service: Schemas['Service'] | null };

/** How the service knows the gateway, and which credentials of callers it asks for. */
export function CredentialFields(props: Props) {
  const { draft, set, errorOf } = props.form;
  const error = errorOf('signed') ?? errorOf('forward_headers');
  return (
    <fieldset class="form-part">
      <legend>Credentials</legend>
      <UpstreamHeaders {...props} />
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

/** Names are shown, values never: they can only be replaced, all of them together. */
function UpstreamHeaders({ form, service }: Props) {
  const { upstream_headers: headers } = form.draft;
  const stored = service?.upstream_headers ?? [];
  const set = (next: readonly HeaderDraft[] | null): void => form.set({ upstream_headers: next });
  const change = (at: number, part: Partial<HeaderDraft>): void =>
    set((headers ?? []).map((header, index) => (index === at ? { ...header, ...part } : header)));
  const error = form.errorOf('upstream_headers');
  return (
    <div class="stack-tight">
      <span class="field-label">Headers that the gateway adds to each call</span>
      <span class="field-hint">
        Such as the key of your own API. Values are encrypted, and nobody can read them again, you included.
      </span>
      {headers === null && stored.length > 0 && (
        <div class="row">
          {stored.map((name) => (
            <code key={name} class="header-name">
              {name}: ••••••
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
      {headers !== null && stored.length > 0 && (
        <div class="row small">
          <span>
            {headers.length === 0 ? 'Saving removes' : 'Saving replaces'} all of: {stored.join(', ')}.
          </span>
          <Button small kind="quiet" onClick={() => set(null)}>
            Keep them
          </Button>
        </div>
      )}
      {(headers ?? []).map(({ name, value }, at) => (
        <div key={at} class="header-line">
          <TextInput
            label={`Header ${at + 1}`}
            mono
            autocomplete="off"
            spellcheck={false}
            placeholder="X-Api-Key"
            value={name}
            onInput={(event) => change(at, { name: event.currentTarget.value.trim() })}
            onBlur={() => name !== '' && value !== '' && form.touch('upstream_headers')}
          />
          <TextInput
            label={`Value ${at + 1}`}
            type="password"
            mono
            autocomplete="off"
            value={value}
            onInput={(event) => change(at, { value: event.currentTarget.value })}
            onBlur={() => form.touch('upstream_headers')}
          />
          <Button
            kind="quiet"
            aria-label={`Remove header ${at + 1}`}
            onClick={() => {
              const left = (headers ?? []).filter((_, index) => index !== at);
              set(left.length === 0 && stored.length === 0 ? null : left);
            }}
          >
            ✕
          </Button>
        </div>
      ))}
      {(headers !== null || stored.length === 0) && (headers?.length ?? 0) < MAX_UPSTREAM_HEADERS && (
        <div>
          <Button small onClick={() => set([...(headers ?? []), { name: '', value: '' }])}>
            Add a header
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
