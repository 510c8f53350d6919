import { PageHead } from '../shared/page-head.tsx';

/** `/console` of a buyer. */
export default function Overview() {
  return <PageHead title="Overview" />;
}
