import type { ComponentChildren } from 'preact';
import type { Schemas } from '../../api/client.ts';
import { Badge, Card, CopyButton, LinkButton } from '../../design/index.ts';
import { session } from '../../session.ts';

/** What a new provider does, in three steps. Those that are done say so. */
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
  return (
    <Card title={first === undefined ? 'List your first service' : 'Next steps'}>
      <ol class="steps">
        <Step at={1} title="List your API" isDone={first !== undefined}>
          <p>A name, the URL of your API, and a price for a call. It is public at once; buyers never see the URL.</p>
          {first === undefined && (
            <LinkButton kind="primary" href="/console/services/new">
              List a service
            </LinkButton>
          )}
        </Step>
        <Step at={2} title="Try it, and say how it is called" isDone={false}>
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
        <Step at={3} title="Get paid" isDone={false}>
          <p>
            Each paid call is credited to you at once, less {feePercent}% for the platform; a call that fails is
            refunded. The operator pays you outside of the gateway: tell them how, and your account id.
          </p>
          <span class="row-tight">
            <code class="break small">{account}</code>
            <CopyButton text={account} />
          </span>
        </Step>
      </ol>
    </Card>
  );
}

function Step({
  at,
  title,
  isDone,
  children,
}: {
  readonly at: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <li class="step">
      <span class={isDone ? 'step-mark step-done' : 'step-mark'} aria-hidden="true">
        {isDone ? '✓' : at}
      </span>
      <div class="stack-tight">
        <h3>
          {title} {isDone && <Badge tone="good">Done</Badge>}
        </h3>
        {children}
      </div>
    </li>
  );
}
