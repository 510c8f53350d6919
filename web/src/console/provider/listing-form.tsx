import type { Schemas } from '../../api/client.ts';
import { Note } from '../../design/index.ts';
import { Check, Select, TextArea, TextInput } from '../../design/more.ts';
import { readAmount } from '../shared/amount.ts';
import { CredentialFields } from './credential-fields.tsx';
import { Foretold, writtenLast } from './foretell.tsx';
import { maxPriceOf } from './listing-draft.ts';
import { endpointFault, healthPathFault, healthUrl, originOf } from './rules.ts';
import { callPrice, usd } from './service-words.tsx';
import type { DraftForm } from './use-draft.ts';
import { earnedOf, useFeePercent } from './use-fee.ts';

type Service = Schemas['Service'];

/** All fields of a listing. @param service the present listing; null: it is new */
export function ListingFields({ form, service }: { readonly form: DraftForm; readonly service: Service | null }) {
  const { draft, bind, set } = form;
  const price = readAmount(draft.price);
  const isMcp = draft.protocol === 'mcp';
  const fee = useFeePercent();
  return (
    <>
      <fieldset class="form-part">
        <legend>What buyers see</legend>
        <div class="form-pair">
          <TextInput {...bind('name')} label="Name" autocomplete="off" placeholder="Weather now" />
          <TextInput
            {...bind('category')}
            label="Category"
            autocomplete="off"
            spellcheck={false}
            placeholder="weather"
            hint="Lower-case words joined by hyphens."
          />
        </div>
        <TextArea
          {...bind('description')}
          label="Description"
          rows={4}
          hint={descriptionHint([...draft.description].length)}
        />
        <TextInput
          {...bind('docs_url')}
          label="Documentation (optional)"
          type="url"
          autocomplete="off"
          placeholder="https://weather.example/docs"
          hint="A page about the service, for people."
        />
      </fieldset>
      <fieldset class="form-part">
        <legend>What a call costs</legend>
        <div class="form-pair">
          <TextInput
            {...bind('price')}
            label="Price in US dollars"
            inputmode="decimal"
            autocomplete="off"
            placeholder="0.002"
            hint={
              price.fault === null ? priceHint(price.usd, maxPriceOf(draft.max_price), fee) : 'At most six decimals.'
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
        </div>
        <div class="form-pair">
          <TextInput
            {...bind('free_calls')}
            label="Free calls (optional)"
            inputmode="numeric"
            autocomplete="off"
            placeholder="none"
            hint="For each buyer account, once."
          />
        </div>
        {service !== null && <RisingPrice form={form} service={service} />}
      </fieldset>
      <fieldset class="form-part">
        <legend>Where it lives</legend>
        <TextInput
          {...bind('endpoint')}
          label="Endpoint"
          type="url"
          mono
          autocomplete="off"
          spellcheck={false}
          placeholder="https://api.weather.example/v1"
          hint="Buyers never see it. What follows the service in the address of a call is appended to it."
        />
        {service !== null && <ForgottenCredentials form={form} service={service} />}
        <div class="form-pair">
          <Select
            label="Protocol"
            name="protocol"
            value={draft.protocol}
            disabled={service !== null}
            hint={service === null ? 'It cannot be changed later.' : 'It cannot be changed.'}
            options={[
              ['http', 'HTTP API'],
              ['mcp', 'MCP server'],
            ]}
            onChange={(event) => set({ protocol: event.currentTarget.value === 'mcp' ? 'mcp' : 'http' })}
          />
          <TextInput
            {...bind('health_path')}
            label="Health path (optional)"
            mono
            autocomplete="off"
            spellcheck={false}
            placeholder="/healthz"
            hint={<HealthHint draft={draft} />}
          />
        </div>
        <div class="form-pair">
          <TextInput
            {...bind('timeout_seconds')}
            label="Timeout (seconds)"
            inputmode="numeric"
            autocomplete="off"
            hint="How long a call may wait for your response to begin: 1 to 300."
          />
          <TextInput
            {...bind('idle_seconds')}
            label="Longest silence (seconds)"
            inputmode="numeric"
            autocomplete="off"
            placeholder="as the gateway has it"
            hint="Optional. Within a response: 1 to 3,600."
          />
        </div>
        {service !== null && (
          <div class="stack-tight">
            <Check
              name="only_operations"
              label={`Refuse calls that match no ${isMcp ? 'tool' : 'operation'}`}
              checked={draft.only_operations}
              onChange={(event) => set({ only_operations: event.currentTarget.checked })}
            />
            {form.errorOf('only_operations') !== undefined && (
              <span class="field-error" role="alert">
                {form.errorOf('only_operations')}
              </span>
            )}
          </div>
        )}
      </fieldset>
      <CredentialFields form={form} service={service} />
    </>
  );
}

/** @param max  null: calls cost the price @param fee  the platform's share in percent; null: not known yet */
function priceHint(price: number, max: number | null, fee: number | null): string {
  const seen = `Buyers see: ${callPrice({ price, max_price: max })}`;
  if (fee === null || (price === 0 && max === null)) return seen;
  const most = max === null ? '' : ` to ${usd(earnedOf(max, fee))}`;
  return `${seen}. You earn ${usd(earnedOf(price, fee))}${most}; the platform's fee is ${fee}%.`;
}

const descriptionHint = (length: number): string =>
  length > 200
    ? `Lists show the first 200 of ${length} characters.`
    : 'What it does, and for whom. Lists show the first 200 characters.';

/** Says before saving when a change takes effect after which calls may cost more. */
function RisingPrice({ form: { draft }, service }: { readonly form: DraftForm; readonly service: Service }) {
  const { usd: price } = readAmount(draft.price);
  if (price === null) return null;
  const freeCalls = Number(draft.free_calls.trim() || 0);
  const maxPrice = maxPriceOf(draft.max_price);
  const wanted = { ...writtenLast(service), price, maxPrice, freeCalls, onlyOperations: draft.only_operations };
  return <Foretold service={service} wanted={wanted} />;
}

/** The full URL that is requested. Providers who repeat the endpoint's path here do not expect that the two are joined. */
function HealthHint({ draft: { endpoint, health_path: path } }: Pick<DraftForm, 'draft'>) {
  const isGood = endpoint !== '' && path !== '' && endpointFault(endpoint) === null && healthPathFault(path) === null;
  if (!isGood) return <>Below the endpoint. Asked every minute, without your headers; buyers see the uptime.</>;
  return (
    <>
      Asked at once and every minute, without your headers: <code class="break">GET {healthUrl(endpoint, path)}</code>
    </>
  );
}

/** Secrets that a listing adds to calls are for the server at its endpoint, and for no other. */
function ForgottenCredentials({ form, service }: { readonly form: DraftForm; readonly service: Service }) {
  const { endpoint, upstream_headers: headers, upstream_query: query } = form.draft;
  const names = [
    ...(headers === null ? (service.upstream_headers ?? []) : []),
    ...(query === null ? (service.upstream_query ?? []) : []),
  ];
  if (names.length === 0 || service.endpoint === undefined || !URL.canParse(endpoint)) return null;
  if (originOf(endpoint) === originOf(service.endpoint)) return null;
  return (
    <Note tone="warn">
      This is another server, so the gateway forgets the headers and parameters for the old one ({names.join(', ')}).
      Set them again below to keep them.
    </Note>
  );
}
