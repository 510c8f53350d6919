import './service.css';
import { useEffect, useState } from 'preact/hooks';
import { useAddress } from '../address.tsx';
import { dataOf, type Schemas } from '../api/client.ts';
import { FailureNote, Skeleton } from '../design/index.ts';
import { Card } from '../design/service.ts';
import { useFirstData } from '../first-data.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useResource } from '../resource.ts';
import { api } from '../session.ts';
import { serviceTitle } from '../title.ts';
import { ServiceCall } from './service-call.tsx';
import { ServiceCharts } from './service-charts.tsx';
import { ServiceFacts } from './service-facts.tsx';
import { ServiceHead } from './service-head.tsx';
import { ServiceOperations } from './service-operations.tsx';
import { ServiceQuality } from './service-quality.tsx';
import { ServiceWaiting } from './service-waiting.tsx';

type Service = Schemas['CallableService'];
type Stats = Schemas['ServiceStats'];

/** `/services/{id}`: everything that a buyer wants to know about one service, and a way to try it. */
export default function ServicePage() {
  const { language } = useI18n();
  const { path } = useAddress();
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
    if (page.failure === null) return <ServiceWaiting />;
    return (
      <div class="page">
        <FailureNote failure={page.failure} retry={page.reload} />
      </div>
    );
  }
  return <ServiceView key={service.id} service={service} />;
}

function ServiceView({ service }: { readonly service: Service }) {
  const { t } = useI18n();
  const stats = useResource(
    service.id,
    (signal) => dataOf(api.value.GET('/api/v1/services/{id}/stats', { params: { path: { id: service.id } }, signal })),
    useFirstData<Stats>('stats'),
  );
  const [chosen, choose] = useChosenOperation(service.operations.length);
  return (
    <div class="page service">
      <ServiceHead service={service} stats={stats.data} />
      <section class="stack service-about" aria-label={t('service.description')}>
        {service.description.trim() === '' ? (
          <p class="faint">{t('service.noDescription')}</p>
        ) : (
          <p class="service-description break" dir="auto">
            {service.description}
          </p>
        )}
        <ServiceFacts service={service} />
      </section>
      <ServiceCall service={service} chosen={chosen} onChoose={choose} />
      {service.operations.length > 0 && <ServiceOperations service={service} chosen={chosen} onTry={choose} />}
      <section class="stack" aria-labelledby="quality">
        <h2 id="quality">{t('service.lastDays')}</h2>
        {stats.failure !== null && stats.data === null && <FailureNote failure={stats.failure} retry={stats.reload} />}
        {stats.data === null && stats.failure === null && <Skeleton lines={5} />}
        {stats.data !== null && <ServiceCharts stats={stats.data} />}
        {stats.data !== null && (
          <Card>
            <ServiceQuality stats={stats.data} service={service} />
          </Card>
        )}
      </section>
    </div>
  );
}

/** The operation that can be tried and is shown as code. An address that ends in `#operation-3` chooses the third. */
function useChosenOperation(count: number): readonly [number, (at: number) => void] {
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    const named = Number(/^#operation-(\d+)$/.exec(location.hash)?.[1]);
    if (!(named >= 1 && named <= count)) return;
    setChosen(named - 1);
    document.querySelector(`#operation-${named} details`)?.setAttribute('open', '');
  }, [count]);
  return [chosen, setChosen];
}
