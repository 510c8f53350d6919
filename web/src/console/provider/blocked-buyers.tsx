import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, FailureNote, say } from '../../design/index.ts';
import { Card, ConfirmDialog } from '../../design/more.ts';
import { api } from '../../session.ts';
import type { TabProps } from './service-frame.tsx';
import { EN } from './service-words.tsx';

type Props = Pick<TabProps, 'service' | 'show'>;
type Status = Schemas['BuyerStatus']['status'];

/** Providers know buyers by the first digits of their pseudonyms. */
export const shortOf = (buyer: string): string => buyer.slice(0, 8);

async function setStatus({ service, show }: Props, buyer: string, status: Status): Promise<void> {
  const path = { id: service.id, buyer };
  await dataOf(api.value.PUT('/api/v1/services/{id}/buyers/{buyer}', { params: { path }, body: { status } }));
  say(status === 'blocked' ? `Buyer ${shortOf(buyer)} is blocked.` : `Buyer ${shortOf(buyer)} may call again.`);
  const params = { path: { id: service.id }, query: { lang: EN } };
  show(await dataOf(api.value.GET('/api/v1/services/{id}', { params })));
}

/** Shown beside a call: blocks the buyer who made it. */
export function BlockButton({ buyer, ...props }: Props & { readonly buyer: string }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <Button small kind="quiet" onClick={() => setAsking(true)} aria-label={`Block buyer ${shortOf(buyer)}`}>
        Block
      </Button>
      {asking && (
        <ConfirmDialog
          title={`Block buyer ${shortOf(buyer)}?`}
          confirm="Block buyer"
          act={() => setStatus(props, buyer, 'blocked')}
          onClose={() => setAsking(false)}
        >
          <p>
            All further calls of this account to {props.service.name} are refused and cost nothing. Calls under way go
            on. You can lift the block at any time. Somebody who opens another account is another buyer.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

export function BlockedBuyers({ service, show }: Props) {
  const [failure, setFailure] = useState<unknown>(null);
  const [busy, setBusy] = useState<string | null>(null);
  const lift = async (buyer: string): Promise<void> => {
    setBusy(buyer);
    setFailure(null);
    await setStatus({ service, show }, buyer, 'active').catch(setFailure);
    setBusy(null);
  };
  return (
    <Card title="Blocked buyers">
      <div class="stack-tight">
        {(service.blocked_buyers ?? []).map((buyer) => (
          <div key={buyer} class="row">
            <code class="break">{buyer}</code>
            <Button
              small
              busy={busy === buyer}
              onClick={() => void lift(buyer)}
              aria-label={`Unblock buyer ${shortOf(buyer)}`}
            >
              Unblock
            </Button>
          </div>
        ))}
        {failure !== null && <FailureNote failure={failure} />}
      </div>
    </Card>
  );
}
