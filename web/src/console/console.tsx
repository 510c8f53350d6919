import './console.css';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary } from 'preact-iso';
import { Button, Empty, FailureNote, LinkButton } from '../design/index.ts';
import { usePlace } from '../place.tsx';
import { isRemembered, resumed, session, signOut } from '../session.ts';
import { SECTIONS, sectionOf } from './sections.ts';
import { SignIn } from './sign-in.tsx';

/** `/console`: what a key can see and do. Signing in changes no address, so a shared address leads where it says. */
export default function Console() {
  useEffect(() => {
    document.title = 'Console · Tollgate';
  }, []);
  if (session.value !== null) return <Frame />;
  // While a remembered key is tried, the form would only flash.
  return resumed.value ? <SignIn /> : <div class="page" aria-busy="true" />;
}

function Frame() {
  const place = usePlace();
  const me = session.value?.me;
  if (me === undefined) return null;
  const sections = SECTIONS[me.role];
  const section = sectionOf(sections, place.path);
  const Page = section?.page;
  return (
    <div class="page console">
      <aside class="console-side">
        <nav aria-label="Console">
          <ul class="console-nav">
            {sections.map(({ path, title }) => (
              <li key={path}>
                <a
                  href={path === '' ? '/console' : `/console/${path}`}
                  aria-current={path === section?.path ? 'page' : undefined}
                >
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="console-who small">
          <span class="break">{me.owner_id}</span>
          <span class="faint">{me.role} key</span>
          <code class="faint break">{me.key_id}</code>
          {!isRemembered() && <span class="faint">Kept in this tab only: a reload signs you out.</span>}
          <Button small onClick={signOut}>
            Sign out
          </Button>
        </div>
      </aside>
      <div class="console-main">
        {Page === undefined ? (
          <Empty title="There is no such page" action={<LinkButton href="/console">To the overview</LinkButton>}>
            Or it is not for {me.role} keys. Sign in with another key to see it.
          </Empty>
        ) : (
          <Caught key={place.path}>
            <Page />
          </Caught>
        )}
      </div>
    </div>
  );
}

/** A page that fails must not take the navigation with it. */
function Caught({ children }: { readonly children: ComponentChildren }) {
  const [failure, setFailure] = useState<unknown>(null);
  if (failure !== null) return <FailureNote failure={failure} retry={() => setFailure(null)} />;
  return <ErrorBoundary onError={setFailure}>{children}</ErrorBoundary>;
}
