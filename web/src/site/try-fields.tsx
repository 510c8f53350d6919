import type { Schemas } from '../api/client.ts';
import { Button } from '../design/index.ts';
import { Select, TextArea, TextInput } from '../design/service.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { parsed } from './service-quote.ts';
import { type Operation, parametersOf, pathNames, REST } from './service-request.ts';
import { mcpHello, mcpMessage, TAKES_BODY, type TryForm, targetOf } from './try-form.ts';
import { Pairs } from './try-pairs.tsx';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

type Props = {
  readonly service: Schemas['CallableService'];
  readonly operation: Operation | null;
  readonly form: TryForm;
  readonly onChange: (form: TryForm) => void;
};

/** All inputs of a call. */
export function TryFields({ service, operation, form, onChange }: Props) {
  const { t } = useI18n();
  const set = (changes: Partial<TryForm>): void => onChange({ ...form, ...changes });
  const isMcp = service.protocol === 'mcp';
  return (
    <>
      {operation === null && !isMcp && (
        <div class="try-line">
          <Select
            label={t('try.method')}
            value={form.method}
            onChange={(event) => set({ method: event.currentTarget.value })}
            options={METHODS.map((method) => [method, method] as const)}
          />
          <TextInput
            mono
            label={t('try.path')}
            value={form.path}
            spellcheck={false}
            onInput={(event) => set({ path: event.currentTarget.value })}
          />
        </div>
      )}
      <PathFields operation={operation} form={form} set={set} />
      {!isMcp && <QueryFields operation={operation} form={form} set={set} />}
      {service.forward_headers?.map((name) => (
        <TextInput
          key={name}
          mono
          label={t('try.credential', { name })}
          hint={t('try.credentialHint')}
          type="password"
          autocomplete="off"
          value={form.credentials[name] ?? ''}
          onInput={(event) => set({ credentials: { ...form.credentials, [name]: event.currentTarget.value } })}
        />
      ))}
      {isMcp && <Messages operation={operation} set={set} />}
      {TAKES_BODY.test(form.method) && <BodyField form={form} set={set} isMcp={isMcp} />}
      <details class="disclosure">
        <summary>
          {t('try.headers')} <span class="faint number">{form.headers.length || ''}</span>
        </summary>
        <Pairs title={t('try.header')} pairs={form.headers} onChange={(headers) => set({ headers })} />
      </details>
      {!isMcp && (
        <p class="try-target" title={t('try.target')}>
          <span class="visually-hidden">{t('try.target')} </span>
          <span class={`method method-${form.method.toLowerCase()}`}>{form.method}</span>{' '}
          <code class="break">{targetOf(service, form)}</code>
        </p>
      )}
    </>
  );
}

type Part = Pick<Props, 'operation' | 'form'> & { readonly set: (changes: Partial<TryForm>) => void };

function PathFields({ operation, form, set }: Part) {
  const { t } = useI18n();
  const told = new Map(
    operation === null ? [] : parametersOf(operation, 'path').map((parameter) => [parameter.name, parameter]),
  );
  return pathNames(operation === null ? '' : form.path).map((name) => {
    const { description = '', type = '' } = told.get(name) ?? {};
    return (
      <TextInput
        key={name}
        mono
        label={name === REST ? t('try.rest') : `{${name}}`}
        hint={[type, description].filter((part) => part !== '').join(' · ') || undefined}
        value={form.values[name] ?? ''}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => set({ values: { ...form.values, [name]: event.currentTarget.value } })}
      />
    );
  });
}

function QueryFields({ operation, form, set }: Part) {
  const { t } = useI18n();
  const told = new Map(
    operation === null ? [] : parametersOf(operation, 'query').map((parameter) => [parameter.name, parameter]),
  );
  const declared = form.query.filter(({ isDeclared }) => isDeclared);
  const free = form.query.filter(({ isDeclared }) => !isDeclared);
  return (
    <>
      {declared.map((pair, at) => {
        const { description = '', type = '', required = false } = told.get(pair.name) ?? {};
        return (
          <TextInput
            key={pair.name}
            mono
            label={required ? `?${pair.name} *` : `?${pair.name}`}
            hint={[type, description].filter((part) => part !== '').join(' · ') || undefined}
            value={pair.value}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => {
              const value = event.currentTarget.value;
              set({ query: [...declared.map((its, i) => (i === at ? { ...its, value } : its)), ...free] });
            }}
          />
        );
      })}
      <details class="disclosure" open={free.length > 0}>
        <summary>{t('try.moreQuery')}</summary>
        <Pairs
          title={t('try.parameter')}
          pairs={free}
          onChange={(pairs) =>
            set({ query: [...declared, ...pairs.map((pair) => ({ ...pair, isDeclared: false, required: false }))] })
          }
        />
      </details>
    </>
  );
}

/** The messages that an MCP server understands. */
function Messages({ operation, set }: Pick<Part, 'operation' | 'set'>) {
  const { t } = useI18n();
  const tool = operation?.tool ?? null;
  return (
    <div class="stack-tight">
      <span class="field-label">{t('try.message')}</span>
      <div class="row">
        <Button small onClick={() => set({ body: mcpHello() })}>
          initialize
        </Button>
        <Button small onClick={() => set({ body: mcpMessage(null) })}>
          tools/list
        </Button>
        {tool !== null && (
          <Button small onClick={() => set({ body: mcpMessage(tool) })}>
            tools/call
          </Button>
        )}
      </div>
      <span class="field-hint">{t('try.mcpHint')}</span>
    </div>
  );
}

function BodyField({ form, set, isMcp }: Pick<Part, 'form' | 'set'> & { readonly isMcp: boolean }) {
  const { t } = useI18n();
  const type = form.headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? '';
  const isWrong = (isMcp || /\bjson\b/i.test(type)) && form.body !== '' && parsed(form.body) === undefined;
  return (
    <TextArea
      mono
      label={t('try.body')}
      rows={Math.min(16, Math.max(4, form.body.split('\n').length + 1))}
      spellcheck={false}
      value={form.body}
      hint={type === '' ? undefined : type}
      error={isWrong ? t('try.notJson') : null}
      onInput={(event) => set({ body: event.currentTarget.value })}
    />
  );
}
