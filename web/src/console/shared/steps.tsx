import type { ComponentChildren } from 'preact';
import { Badge } from '../../design/index.ts';
import { Card } from '../../design/more.ts';

/**
 * The first steps of a new user, in order.
 *
 * @param below what needs the whole width
 */
export const Steps = ({
  title,
  children,
  below,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly below?: ComponentChildren;
}) => (
  <Card title={title}>
    <ol class="steps">{children}</ol>
    {below}
  </Card>
);

/** @param at  1 for the first */
export function Step({
  at,
  title,
  isDone = false,
  children,
}: {
  readonly at: number;
  readonly title: string;
  readonly isDone?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <li class="step">
      <span class={isDone ? 'step-mark step-done' : 'step-mark'} aria-hidden="true">
        {isDone ? '✓' : at}
      </span>
      <div class="stack-tight">
        <h3>
          {title} {isDone && <Badge tone="good">Done</Badge>}
        </h3>
        {children}
      </div>
    </li>
  );
}
