import { dataOf, type Schemas } from '../../api/client.ts';
import { LinkButton } from '../../design/index.ts';
import { CopyButton } from '../../design/more.ts';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { Step, Steps } from '../shared/steps.tsx';

/** The first three steps of a new provider. Completed steps say so. */
export function FirstSteps({
  services,
  feePercent,
}: {
  readonly services: readonly Schemas['Service'][];
  readonly feePercent: number;
}) {
  const [first] = services;
  const account = session.value?.me.account_id ?? '';
  const base = `/console/services/${first?.id}`;
  // A list has no operations.
  const whole = useResource(`operations of ${first?.id}`, async (signal) =>
    first === undefined
      ? null
      : dataOf(api.value.GET('/api/v1/services/{id}', { params: { path: { id: first.id } }, signal })),
  );
  const hasOperations = (whole.data?.operations ?? []).length > 0;
  return (
    <Steps title={first === undefined ? 'List your first service' : 'Next steps'}>
      <Step at={1} title="List your API" isDone={first !== undefined}>
        <p>A name, the URL of your API, and a price for a call. It is public at once; buyers never see the URL.</p>
        {first === undefined && (
          <LinkButton kind="primary" href="/console/services/new">
            List a service
          </LinkButton>
        )}
      </Step>
      <Step at={2} title="Try it, and say how it is called" isDone={hasOperations}>
        <p>
          A test call is free. Operations tell agents the paths, with schemas and examples: import your OpenAPI
          document.
        </p>
        {first !== undefined && (
          <span class="row">
            <LinkButton href={base}>Make a test call</LinkButton>
            <LinkButton href={`${base}/operations`}>Add operations</LinkButton>
          </span>
        )}
      </Step>
      <Step at={3} title="Get paid">
        <p>
          Each paid call is credited to you at once, less {feePercent}% for the platform; a call that fails is refunded.
          The operator pays you outside of the gateway: tell them how, and your account id.
        </p>
        <span class="row-tight">
          <code class="break small">{account}</code>
          <CopyButton text={account} />
        </span>
      </Step>
    </Steps>
  );
}
