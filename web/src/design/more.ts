// The components of the console: those of a service's page, and its own. Only its file loads these, with more.css.

export { Bar } from './bar.tsx';
export { ConfirmDialog, Dialog } from './dialog.tsx';
export { useChosenInView } from './in-view.ts';
export {
  Card,
  Check,
  Code,
  CopyButton,
  Field,
  Select,
  type Series,
  Stat,
  Stats,
  Tabs,
  TextArea,
  TextInput,
  TimeChart,
} from './service.ts';
export { type Column, Table } from './table.tsx';
