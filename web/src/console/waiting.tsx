import './frame.css';
import { useAddress } from '../address.tsx';
import { type Shape, Skeleton, SkeletonCard, SkeletonPage } from '../design/index.ts';
import { mayBeSignedIn } from '../session.ts';

/** The console while it loads its files, or finds out who is signed in. */
export function ConsoleWaiting() {
  if (mayBeSignedIn()) return <FrameWaiting />;
  return (
    <div class="page sign-in">
      <h1>Console</h1>
      <SkeletonCard lines={6} />
      <SkeletonCard lines={6} />
    </div>
  );
}

function FrameWaiting() {
  const { path } = useAddress();
  const section = path.split('/')[2] ?? '';
  return (
    <div class="page console">
      <aside class="console-side console-side-waiting">
        <Skeleton lines={5} />
      </aside>
      <div class="console-main">
        <SectionWaiting
          title={section === '' ? 'Overview' : `${section.charAt(0).toUpperCase()}${section.slice(1)}`}
          shape={section === '' ? 'figures' : 'list'}
        />
      </div>
    </div>
  );
}

/** A page of the console while its file is loading. The heading gets the focus when the page itself is shown. */
export function SectionWaiting({ title, shape }: { readonly title: string; readonly shape: Shape }) {
  return (
    <>
      <div class="page-head">
        <div>
          <h1>{title}</h1>
          <p class="skeleton page-lead-waiting" aria-hidden="true">
            &nbsp;
          </p>
        </div>
      </div>
      <SkeletonPage shape={shape} />
    </>
  );
}
