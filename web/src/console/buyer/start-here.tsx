import { useAddress } from '../../address.tsx';
import { LinkButton } from '../../design/index.ts';
import { Code } from '../../design/more.ts';
import { money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { Step, Steps } from '../shared/steps.tsx';

/** The next steps of a new account, in order. @param balance null while it is not known @param isChild  a key with a budget, which added money does not raise */
export function StartHere({ balance, isChild }: { readonly balance: number | null; readonly isChild: boolean }) {
  const { language } = useI18n();
  const { origin } = useAddress();
  const hasMoney = balance !== null && balance > 0;
  return (
    <Steps
      title="Three steps to the first call"
      below={
        <Code
          label="A call with curl"
          text={`curl ${origin}/api/v1/proxy/SERVICE/ \\\n  -H "Authorization: Bearer $TOLLGATE_KEY"`}
        />
      }
    >
      <Step at={1} title="Find a service">
        <p>Each page says what a call costs, how well the service works, and how to call it.</p>
        <span class="row">
          <LinkButton kind="primary" href="/">
            Look at the catalog
          </LinkButton>
          <LinkButton href="/?free=true">Services with free calls</LinkButton>
        </span>
      </Step>
      <Step at={2} title={isChild ? 'Look at its budget' : 'Add money'} isDone={hasMoney}>
        <p>
          {hasMoney
            ? `${isChild ? 'This key' : 'The account'} has ${money(balance, language)}.`
            : `Free calls need none. The price of any other call is taken from ${isChild ? 'what is left for this key' : 'the balance of the account'}.`}
        </p>
        {!hasMoney && isChild && <LinkButton href="/console/keys">Its budget</LinkButton>}
        {!hasMoney && !isChild && <LinkButton href="/console/money">How to add money</LinkButton>}
      </Step>
      <Step at={3} title="Call it">
        <p>
          On the page of the service, press “Try it”. From a program, send the key as a header. SERVICE is the id in the
          address of its page.
        </p>
      </Step>
    </Steps>
  );
}
