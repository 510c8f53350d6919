import { useEffect } from 'preact/hooks';
import { dataOf, type Schemas } from '../api/client.ts';
import { FailureNote, Skeleton } from '../design/index.ts';
import { useFirstData } from '../first-data.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { usePlace } from '../place.tsx';
import { useResource } from '../resource.ts';
import { api } from '../session.ts';
import { serviceTitle } from '../title.ts';

type Service = Schemas['CallableService'];

/** `/services/{id}`: all that a buyer wants to know of one service, and a way to try it. */
export function ServicePage() {
  const { language } = useI18n();
  const { path } = usePlace();
  const id = path.split('/')[2] ?? '';
  const first = useFirstData<Service>('service');
  const page = useResource(
    `${id} ${language}`,
    (signal) =>
      dataOf(api.value.GET('/api/v1/discover/{id}', { params: { path: { id }, query: { lang: language } }, signal })),
    first,
  );
  const service = page.data;
  useEffect(() => {
    if (service !== null) document.title = serviceTitle(service.name);
  }, [service]);
  if (service === null) {
    return (
      <div class="page">
        {page.failure === null ? <Skeleton /> : <FailureNote failure={page.failure} retry={page.reload} />}
      </div>
    );
  }
  return (
    <div class="page stack">
      <h1 class="break">{service.name}</h1>
      <p class="break">{service.description}</p>
    </div>
  );
}
