import { useState } from 'preact/hooks';
import { dataOf } from '../../api/client.ts';
import { Button, FailureNote, Note, say } from '../../design/index.ts';
import { Card } from '../../design/more.ts';
import { api } from '../../session.ts';
import { SigningSecretShownOnce } from '../shared/secret-shown-once.tsx';
import { AskBeforeLeaving } from './leaving.tsx';
import { changeOf, draftOf, faultsOf } from './listing-draft.ts';
import { ListingFields } from './listing-form.tsx';
import type { TabProps } from './service-frame.tsx';
import { StateCard } from './state-card.tsx';
import { TestCall } from './test-call.tsx';
import { useDraft } from './use-draft.ts';

/** `/console/services/{id}`: the listing as a form, and beside it its state and a test call. */
export function ListingTab(props: TabProps) {
  const { service, show } = props;
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <div class="service-columns">
      <EditForm
        {...props}
        show={(changed) => {
          show(changed);
          if (changed.signing_secret !== undefined) setSecret(changed.signing_secret);
        }}
      />
      <div class="stack">
        <StateCard {...props} onSecret={setSecret} />
        <TestCall service={service} />
      </div>
      {secret !== null && <SigningSecretShownOnce secret={secret} onClose={() => setSecret(null)} />}
    </div>
  );
}

function EditForm({ service, show }: Pick<TabProps, 'service' | 'show'>) {
  const form = useDraft(draftOf(service), faultsOf);
  const [forgotten, setForgotten] = useState<readonly string[]>([]);
  const change = changeOf(form.draft, draftOf(service));
  const isChanged = Object.keys(change).length > 0;
  const save = async (): Promise<void> => {
    await form.submit(async () => {
      const params = { path: { id: service.id } };
      const changed = await dataOf(api.value.PATCH('/api/v1/services/{id}', { params, body: change }));
      form.reset(draftOf(changed));
      setForgotten([...(changed.forgotten_upstream_headers ?? []), ...(changed.forgotten_upstream_query ?? [])]);
      show(changed);
      say(changed.next_price === undefined ? 'Saved.' : 'Saved. The new price is announced.');
    });
  };
  return (
    <form
      class="listing-form"
      method="post"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <AskBeforeLeaving when={isChanged && !form.busy} />
      <Card>
        <ListingFields form={form} service={service} />
        <div class="form-foot form-foot-stays">
          {form.failure !== null && <FailureNote failure={form.failure} />}
          {forgotten.length > 0 && (
            <Note tone="warn">
              The endpoint moved, so these headers and parameters were forgotten: {forgotten.join(', ')}.
            </Note>
          )}
          <Button kind="primary" type="submit" busy={form.busy} disabled={!isChanged}>
            Save changes
          </Button>
          {isChanged && (
            <Button kind="quiet" onClick={() => form.reset(draftOf(service))}>
              Discard
            </Button>
          )}
        </div>
      </Card>
    </form>
  );
}
