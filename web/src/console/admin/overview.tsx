import { PageHead } from '../shared/page-head.tsx';

/** `/console` of a admin. */
export default function Overview() {
  return <PageHead title="Overview" />;
}
