// The design system of the pages, used by all rooms; `service.ts` and `more.ts` are its larger parts. Styles: tokens.css, base.css, components.css, more.css.

export { Badge, type Tone } from './badge.tsx';
export { Button, LinkButton } from './button.tsx';
export { begin, ProgressBar } from './progress.tsx';
export { type Shape, Skeleton, SkeletonCard, SkeletonPage, SkeletonRows, SkeletonStats } from './skeleton.tsx';
export { Empty, FailureNote, Note } from './states.tsx';
export { say, Toasts } from './toasts.tsx';
