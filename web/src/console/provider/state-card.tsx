import { useEffect, useRef, useState } from 'preact/hooks';
import { dataOf } from '../../api/client.ts';
import { Button, FailureNote } from '../../design/index.ts';
import { Card, ConfirmDialog } from '../../design/more.ts';
import { ago, moment } from '../../i18n/format.ts';
import { api } from '../../session.ts';
import type { TabProps } from './service-frame.tsx';
import { EN, Health, Reachable, uptimeWords } from './service-words.tsx';

/** An endpoint has 5 s to answer, and then the health path. Each check is one of the key's sixty requests a minute. */
const LOOKS = 9;
const LOOK_MS = 1_200;
const NEW_MS = 10_000;

type Service = TabProps['service'];

/** Whether the present endpoint or health path has not been asked yet. */
const isAwaited = ({ checked_at: checked, health }: Service): boolean =>
  checked === undefined || (health !== undefined && health.up === undefined);

/** The state of a service: whether its endpoint answers, its uptime and quality, and how its calls are signed. */
export function StateCard({ service, show, onSecret }: TabProps & { readonly onSecret: (secret: string) => void }) {
  const [asking, setAsking] = useState(false);
  const [renewing, setRenewing] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const ended = useRef(false);
  useEffect(() => {
    ended.current = false;
    // A new endpoint or health path is being asked right now.
    if (isAwaited(service) && Date.now() - Date.parse(service.updated_at) < NEW_MS)
      void look((now) => !isAwaited(now)).catch(setFailure);
    return () => {
      ended.current = true;
    };
  }, [service.updated_at]);
  const params = { path: { id: service.id } };
  const look = async (isThere: (now: Service) => boolean): Promise<void> => {
    for (let at = 0; at < LOOKS; at++) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      if (ended.current) return;
      const now = await dataOf(api.value.GET('/api/v1/services/{id}', { params }));
      if (isThere(now)) return show(now);
    }
  };
  const askAgain = async (): Promise<void> => {
    setAsking(true);
    setFailure(null);
    try {
      const endpoint = service.endpoint ?? '';
      await dataOf(api.value.PATCH('/api/v1/services/{id}', { params, body: { endpoint } }));
      await look(
        (now) =>
          now.checked_at !== service.checked_at &&
          (now.health === undefined || now.health.asked_at !== service.health?.asked_at),
      );
    } catch (error) {
      setFailure(error);
    }
    setAsking(false);
  };
  return (
    <Card title="State of the service">
      <div class="stack">
        <dl class="facts">
          <dt>Endpoint</dt>
          <dd>
            <Reachable service={service} />
            {service.checked_at !== undefined && (
              <span class="faint small" title={moment(service.checked_at, EN)}>
                {' '}
                checked {ago(service.checked_at, EN, Date.now())}
              </span>
            )}
          </dd>
          <dt>Health</dt>
          <dd>
            <Health service={service} />
          </dd>
          <dt>Uptime</dt>
          <dd>
            {service.uptime === undefined
              ? service.health === undefined
                ? 'Set a health path to measure it'
                : 'Not measured yet'
              : uptimeWords(service.uptime)}
          </dd>
          <dt>Quality</dt>
          <dd>
            <a href={`/console/services/${service.id}/quality`}>
              {service.rated ? `${service.quality.toFixed(1)} of 100` : 'Not rated yet'}
            </a>
          </dd>
          {service.signing_keyid !== undefined && (
            <>
              <dt>Signed by</dt>
              <dd>
                <code>{service.signing_keyid}</code>
              </dd>
            </>
          )}
        </dl>
        {service.reachable === false && (
          <p class="small soft">
            {service.reachable_reason ?? 'Nothing answered at the endpoint.'} Check the address, and that it is on the
            public internet.
          </p>
        )}
        <div class="row">
          <Button small busy={asking} onClick={() => void askAgain()}>
            {asking ? 'Checking…' : 'Check the endpoint again'}
          </Button>
          {service.signed === true && (
            <Button small onClick={() => setRenewing(true)}>
              New signing secret
            </Button>
          )}
        </div>
        {failure !== null && <FailureNote failure={failure} />}
      </div>
      {renewing && (
        <ConfirmDialog
          title="Make a new signing secret?"
          confirm="Make a new secret"
          danger={false}
          act={async () => {
            const renewed = await dataOf(api.value.POST('/api/v1/services/{id}/signing-secret', { params }));
            show(renewed);
            if (renewed.signing_secret !== undefined) onSecret(renewed.signing_secret);
          }}
          onClose={() => setRenewing(false)}
        >
          <p>
            For a day each call is signed by the new secret and by the old one, so that you have time to replace it. If
            a secret has leaked, do this twice: the second time ends the oldest at once.
          </p>
        </ConfirmDialog>
      )}
    </Card>
  );
}
