import './provider.css';
import { useAddress } from '../../address.tsx';
import { Empty, LinkButton } from '../../design/index.ts';
import { CallsTab } from './calls-tab.tsx';
import { ListingTab } from './listing-tab.tsx';
import { NewService } from './new-service.tsx';
import { OperationsTab } from './operations-tab.tsx';
import { QualityTab } from './quality-tab.tsx';
import { ServiceFrame } from './service-frame.tsx';
import { ServicesList } from './services-list.tsx';

const TABS = {
  '': ListingTab,
  operations: OperationsTab,
  calls: CallsTab,
  quality: QualityTab,
} as const;

/** `/console/services`, `/console/services/new`, `/console/services/{id}` and the pages of one service. */
export default function Services() {
  const { path } = useAddress();
  const [, , , id = '', tab = ''] = path.split('/');
  if (id === '') return <ServicesList />;
  if (id === 'new') return <NewService />;
  const Tab = TABS[tab as keyof typeof TABS];
  if (Tab === undefined) {
    return (
      <Empty
        title="There is no such page"
        action={<LinkButton href={`/console/services/${id}`}>To the service</LinkButton>}
      />
    );
  }
  return <ServiceFrame id={id} tab={tab} content={Tab} />;
}
