import type { ComponentChildren } from 'preact';
import { Badge, Card, Code, LinkButton } from '../../design/index.ts';
import { money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { usePlace } from '../../place.tsx';

/** What a new account does next, in order. @param balance  null while it is not known */
export function StartHere({ balance }: { readonly balance: number | null }) {
  const { language } = useI18n();
  const { origin } = usePlace();
  const hasMoney = balance !== null && balance > 0;
  return (
    <Card title="Three steps to the first call">
      <ol class="steps">
        <Step
          title="Find a service"
          action={
            <>
              <LinkButton kind="primary" href="/">
                Look at the catalog
              </LinkButton>
              <LinkButton href="/?free=true">Services with free calls</LinkButton>
            </>
          }
        >
          Each page says what a call costs, how well the service works, and how to call it.
        </Step>
        <Step
          title="Add money"
          done={hasMoney}
          action={!hasMoney && <LinkButton href="/console/money">How to add money</LinkButton>}
        >
          {hasMoney
            ? `The account has ${money(balance, language)}.`
            : 'Free calls need none. For all others the price is taken from the balance of the account.'}
        </Step>
        <Step title="Call it">
          On the page of the service, press “Try it”. From a program, send the key as a header. SERVICE is the id in the
          address of its page.
          <Code
            label="A call with curl"
            text={`curl ${origin}/api/v1/proxy/SERVICE/ \\\n  -H "Authorization: Bearer $TOLLGATE_KEY"`}
          />
        </Step>
      </ol>
    </Card>
  );
}

function Step({
  title,
  done = false,
  action,
  children,
}: {
  readonly title: string;
  readonly done?: boolean;
  readonly action?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <li class="step">
      <h3>
        {title} {done && <Badge tone="good">Done</Badge>}
      </h3>
      <div class="soft small stack-tight">{children}</div>
      {action && <div class="row">{action}</div>}
    </li>
  );
}
