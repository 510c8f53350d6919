import { useState } from 'preact/hooks';
import { useAddress } from '../../address.tsx';
import { ApiFailure, dataOf } from '../../api/client.ts';
import { Button, FailureNote, LinkButton, Note, say } from '../../design/index.ts';
import { Card } from '../../design/more.ts';
import { api } from '../../session.ts';
import { PageHead } from '../shared/page-head.tsx';
import { SigningSecretShownOnce } from '../shared/secret-shown-once.tsx';
import { AskBeforeLeaving } from './leaving.tsx';
import { EMPTY_DRAFT, faultsOf, newServiceOf } from './listing-draft.ts';
import { ListingFields } from './listing-form.tsx';
import { EN } from './service-words.tsx';
import { useDraft } from './use-draft.ts';

/** `/console/services/new` */
export function NewService() {
  const address = useAddress();
  const form = useDraft(EMPTY_DRAFT, faultsOf);
  const [secret, setSecret] = useState<{ readonly of: string; readonly text: string } | null>(null);
  const list = async (status: 'active' | 'paused'): Promise<void> => {
    await form.submit(async (draft) => {
      const headers = { 'Accept-Language': EN };
      const body = { ...newServiceOf(draft), status };
      const service = await dataOf(api.value.POST('/api/v1/services', { body, headers }));
      say(status === 'active' ? `${service.name} is listed.` : `${service.name} is saved, and not listed.`);
      const url = `/console/services/${service.id}`;
      if (service.signing_secret === undefined) address.go(url, true);
      else setSecret({ of: url, text: service.signing_secret });
    });
  };
  return (
    <>
      <nav class="small" aria-label="Where this is">
        <a href="/console/services">Services</a>
      </nav>
      <PageHead
        title="List a service"
        lead="It is public as soon as you list it; a draft is not, and you can try it first. All of it can be changed later but the protocol."
      />
      <form
        class="listing-form"
        method="post"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void list('active');
        }}
      >
        <AskBeforeLeaving when={form.draft !== EMPTY_DRAFT && !form.busy && secret === null} />
        <Card>
          <ListingFields form={form} service={null} />
          <div class="form-foot">
            {form.failure !== null && <FailureNote failure={form.failure} />}
            {form.failure instanceof ApiFailure && form.failure.status === 0 && (
              <Note tone="warn">
                It may be listed all the same, if only the answer was lost. Look at your services before you list it
                again.
              </Note>
            )}
            <Button kind="primary" type="submit" busy={form.busy}>
              List it
            </Button>
            <Button busy={form.busy} onClick={() => void list('paused')}>
              Save without listing
            </Button>
            <LinkButton kind="quiet" href="/console/services">
              Cancel
            </LinkButton>
          </div>
        </Card>
      </form>
      {secret !== null && <SigningSecretShownOnce secret={secret.text} onClose={() => address.go(secret.of, true)} />}
    </>
  );
}
