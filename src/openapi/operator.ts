import type { OperatorDetails } from '../platform/operator.ts';
import { EXAMPLE, record, TEXT } from './schemas.ts';

/** What an answer says about the operator, if anything. */
export const OPERATOR = record(
  'Operator',
  {
    name: TEXT,
    contact: { type: 'string', description: 'An e-mail address, or an http or https URL' },
    terms_url: { type: 'string', description: 'The terms of this gateway' },
  },
  { optional: ['name', 'contact', 'terms_url'], description: 'Who runs this gateway, as far as the operator says it' },
);
export const OPERATOR_EXAMPLE = {
  name: 'Acme',
  contact: 'help@example.com',
  terms_url: 'https://example.com/terms',
} satisfies OperatorDetails;

export const TOP_UP = {
  type: 'string',
  description: 'Where money can be added to this account, if the operator names such a page',
};
export const TOP_UP_EXAMPLE = `https://example.com/top-up?account_id=${EXAMPLE.accountId}`;
