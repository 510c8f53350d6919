import { useHref } from './address.tsx';
import { Empty, LinkButton } from './design/index.ts';
import { useI18n } from './i18n/i18n.tsx';

export function NotFound() {
  const { t } = useI18n();
  const href = useHref();
  return (
    <div class="page">
      <Empty
        isPage
        title={t('notFound.title')}
        action={
          <LinkButton kind="primary" href={href('/')}>
            {t('notFound.action')}
          </LinkButton>
        }
      >
        {t('notFound.text')}
      </Empty>
    </div>
  );
}
