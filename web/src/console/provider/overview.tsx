import { PageHead } from '../shared/page-head.tsx';

/** `/console` of a provider. */
export default function Overview() {
  return <PageHead title="Overview" />;
}
