import './provider.css';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Button, FailureNote, SkeletonCard, say } from '../../design/index.ts';
import { Card, TextInput } from '../../design/more.ts';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { PageHead } from '../shared/page-head.tsx';
import { sentence } from '../shared/sentence.ts';
import { AskBeforeLeaving } from './leaving.tsx';
import { contactFault, displayNameFault, profileUrlFault } from './rules.ts';
import { type FaultsOf, useDraft } from './use-draft.ts';

type Account = Schemas['ProviderAccount'];
type Draft = Readonly<Record<Field, string>>;
type Field = 'display_name' | 'contact' | 'url';

const FIELDS: readonly Field[] = ['display_name', 'contact', 'url'];
/** The operator's name is checked by the gateway, which knows it. */
const FAULTS: Readonly<Record<Field, (text: string) => string | null>> = {
  display_name: (text) => displayNameFault(text, null),
  contact: contactFault,
  url: profileUrlFault,
};

/** `/console/profile`: what the account's listings show about it. */
export default function ProfilePage() {
  const { data, failure, reload } = useResource(`profile ${session.value?.me.key_id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/accounts/me', { signal })),
  );
  return (
    <>
      <PageHead title="Profile" lead="What buyers see of you on each of your services. All of it is optional." />
      {failure !== null && <FailureNote failure={failure} retry={reload} />}
      {data === null && failure === null && <SkeletonCard lines={8} />}
      {data !== null && <ProfileForm account={data} onSaved={reload} />}
    </>
  );
}

function faultsOf(draft: Draft): FaultsOf<Draft> {
  const faults = FIELDS.map((field) => [field, draft[field].trim() === '' ? null : FAULTS[field](draft[field].trim())]);
  return Object.fromEntries(
    faults.filter(([, fault]) => fault !== null).map(([field, fault]) => [field, sentence(fault ?? '')]),
  );
}

const draftOf = (account: Account): Draft => ({
  display_name: account.display_name ?? '',
  contact: account.contact ?? '',
  url: account.url ?? '',
});

function ProfileForm({ account, onSaved }: { readonly account: Account; readonly onSaved: () => void }) {
  const saved = draftOf(account);
  const form = useDraft(saved, faultsOf);
  const changed = FIELDS.filter((field) => form.draft[field].trim() !== saved[field]);
  const save = (draft: Draft): Promise<boolean> =>
    form.submit(async () => {
      const body = Object.fromEntries(changed.map((field) => [field, draft[field].trim() || null]));
      form.reset(draftOf(await dataOf(api.value.PATCH('/api/v1/accounts/me', { body }))));
      say('Saved.');
      onSaved();
    });
  const bind = (field: Field) => ({ ...form.bind(field), autocomplete: 'off' as const });
  return (
    <form
      class="listing-form"
      method="post"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save(form.draft);
      }}
    >
      <AskBeforeLeaving when={changed.length > 0 && !form.busy} />
      <Card>
        <fieldset class="form-part">
          <legend>Who offers your services</legend>
          <TextInput {...bind('display_name')} label="Display name" hint="The catalog shows it beside each service." />
          <TextInput
            {...bind('contact')}
            label="Contact"
            placeholder="help@weather.example"
            hint="How buyers reach you: an e-mail address, or anything else in one line."
          />
          <TextInput
            {...bind('url')}
            label="Web page"
            type="url"
            placeholder="https://weather.example"
            hint="A page about you."
          />
          <p class="small soft">
            Buyers also see since when your account is there, and how many active services it has ({account.services}).
            They see none of this beside your own calls of other services. The label of the account ({account.owner_id})
            stays with you and the operator.
          </p>
        </fieldset>
        <div class="form-foot">
          {form.failure !== null && <FailureNote failure={form.failure} />}
          <Button kind="primary" type="submit" busy={form.busy} disabled={changed.length === 0}>
            Save changes
          </Button>
          {changed.length > 0 && (
            <Button kind="quiet" onClick={() => form.reset(saved)}>
              Discard
            </Button>
          )}
        </div>
      </Card>
    </form>
  );
}
