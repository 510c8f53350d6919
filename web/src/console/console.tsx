import '../design/more.css';
import './console.css';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ErrorBoundary } from 'preact-iso';
import { useAddress } from '../address.tsx';
import { ApiFailure } from '../api/client.ts';
import { Button, Empty, FailureNote, LinkButton, Note } from '../design/index.ts';
import { Card, useChosenInView } from '../design/more.ts';
import { I18nProvider, makeI18n } from '../i18n/i18n.tsx';
import en from '../i18n/messages/en.json';
import { follow, hasStayed, resume, resumed, session, unanswered } from '../session.ts';
import { unsaved } from '../unsaved.ts';
import { SECTIONS, sectionOf } from './all-sections.ts';
import type { Section } from './section.tsx';
import { NewAccount, SignIn } from './sign-in.tsx';
import { UnkeptNote } from './unkept-note.tsx';
import { ConsoleWaiting } from './waiting.tsx';
import { Who } from './who.tsx';

/** `/console`: what a key can see and do. Signing in does not change the address, so a shared address works. */
export default function Console() {
  const isNobody = session.value === null;
  // The title must not name somebody after they sign out.
  useEffect(() => {
    if (isNobody) document.title = 'Console · Tollgate';
  }, [isNobody]);
  return (
    <I18nProvider value={ENGLISH}>
      <div lang="en">
        {/* While a remembered key is tried, the form would only flash. */}
        {!isNobody ? (
          <Frame />
        ) : unanswered.value !== null ? (
          <Unanswered />
        ) : resumed.value ? (
          <SignIn />
        ) : (
          <ConsoleWaiting />
        )}
      </div>
    </I18nProvider>
  );
}

/** Fetches the file of one of its pages. @param path  an address of the console */
export function preloadSection(path: string): Promise<unknown> | null {
  const role = session.value?.me.role;
  return role === undefined ? null : (sectionOf(SECTIONS[role], path)?.page.preload() ?? null);
}

/** A visitor from a page in another language sees numbers and dates in the language of the surrounding words. */
const ENGLISH = makeI18n('en', en);

/** Somebody is signed in here, but the gateway did not say who: a form would ask for a key that is not needed. */
function Unanswered() {
  const [busy, setBusy] = useState(false);
  const failure = unanswered.value;
  const again = (): void => {
    setBusy(true);
    void resume().finally(() => setBusy(false));
  };
  const waits = failure instanceof ApiFailure ? failure.retryAfter : null;
  // The reader need not count the seconds.
  useEffect(() => {
    if (waits === null) return;
    const timer = setTimeout(again, waits * 1_000);
    return () => clearTimeout(timer);
  }, [failure]);
  return (
    <div class="page stack">
      <div class="stack-tight">
        <h1>Console</h1>
        <p class="soft">Somebody is signed in here, but the gateway could not be asked who.</p>
      </div>
      <FailureNote failure={failure} />
      {waits !== null && <p class="soft small">This page asks again by itself.</p>}
      <div class="row">
        <Button kind="primary" busy={busy} onClick={again}>
          Try again
        </Button>
        <Button
          onClick={() => {
            unanswered.value = null;
          }}
        >
          Sign in with a key
        </Button>
      </div>
    </div>
  );
}

/** The address of a single thing. */
const ONE = /^\/console\/\w+\/[0-9a-f]{8}-/;

/** Pages of one thing that roles call by different names. */
const TWINS: Readonly<Record<string, string>> = {
  '/console/money': '/console/statement',
  '/console/statement': '/console/money',
};

function Frame() {
  const address = useAddress();
  const me = session.value?.me;
  const sections = me === undefined ? [] : SECTIONS[me.role];
  const section = sectionOf(sections, address.path);
  const Page = section?.page;
  const keyId = me?.key_id;
  const accountId = me?.account_id;
  const shown = useRef({ keyId, accountId });
  // Who has switched to another account goes on with what that has in place of this page.
  useEffect(() => {
    const before = shown.current;
    if (before.keyId === keyId) return;
    shown.current = { keyId, accountId };
    scrollTo(0, 0);
    // One call or service is of the account that was there before. An operator sees those of all.
    const isOfOne = before.accountId !== accountId && me?.role !== 'admin' && ONE.test(address.path);
    if (Page !== undefined && !isOfOne) return;
    const twin = TWINS[address.path];
    address.go(twin !== undefined && sectionOf(sections, twin) !== undefined ? twin : '/console', true);
  }, [keyId]);
  if (me === undefined) return null;
  return (
    <div class="page console">
      <aside class="console-side">
        <Sections sections={sections} current={section?.marks ?? section?.path ?? null} />
        <Who />
      </aside>
      <div class="console-main">
        {me.account_status === 'suspended' && (
          <Note tone="warn">
            <span>This account is suspended. It can read its own money, and nothing else.</span>
            {me.suspension_reason !== null && <span class="break">Reason: {me.suspension_reason}</span>}
          </Note>
        )}
        <UnkeptNote />
        {hasStayed.value && (
          <Note tone="warn">
            <span>
              Another tab has switched to another account. This one stays as {me.owner_id}
              {unsaved.value ? ', because something here is not saved.' : '.'}
            </span>
            <Button small onClick={() => void follow(true)}>
              {unsaved.value ? 'Discard it and switch here, too' : 'Switch here, too'}
            </Button>
          </Note>
        )}
        {Page === undefined && me.role === 'buyer' && address.path.startsWith('/console/services') ? (
          <Selling />
        ) : Page === undefined ? (
          <Empty isPage title="There is no such page" action={<LinkButton href="/console">To the overview</LinkButton>}>
            Or it is not for {me.role} keys. Sign in with another key to see it.
          </Empty>
        ) : (
          <Caught key={`${me.key_id} ${address.path}`}>
            <Page />
          </Caught>
        )}
      </div>
    </div>
  );
}

/** A buyer, as every visitor who tried a call is, followed 'Sell your API'. */
function Selling() {
  return (
    <div class="stack">
      <div class="stack-tight">
        <h1>List a service</h1>
        <p class="soft">
          This account calls services. Open one that lists them: you stay signed in with both, and can switch between
          the two.
        </p>
      </div>
      <Card title="Open an account">
        <NewAccount />
      </Card>
    </div>
  );
}

function Sections({ sections, current }: { readonly sections: readonly Section[]; readonly current: string | null }) {
  const list = useChosenInView<HTMLUListElement>(current);
  const shown = sections.filter(({ isHidden }) => !isHidden);
  return (
    <nav aria-label="Console">
      <ul class="console-nav" ref={list}>
        {shown.map(({ path, title }) => (
          <li key={path}>
            <a
              href={path === '' ? '/console' : `/console/${path}`}
              aria-current={path === current ? 'page' : undefined}
            >
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A page that fails must not remove the navigation. */
function Caught({ children }: { readonly children: ComponentChildren }) {
  const [failure, setFailure] = useState<unknown>(null);
  if (failure !== null) return <FailureNote failure={failure} retry={() => setFailure(null)} />;
  return <ErrorBoundary onError={setFailure}>{children}</ErrorBoundary>;
}
