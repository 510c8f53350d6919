/** What the operator of a gateway says about itself (OPERATOR_NAME, OPERATOR_CONTACT, TERMS_URL), as the API shows it. */
export type OperatorDetails = {
  readonly name?: string;
  /** An e-mail address, or an http or https URL. */
  readonly contact?: string;
  readonly terms_url?: string;
};

/** Who runs this gateway, and how its buyers get money. */
export class Operator {
  /** Null if the operator says nothing about itself. */
  readonly details: OperatorDetails | null;
  readonly #topUpUrl: string | null;

  /** @param topUpUrl  TOP_UP_URL, or null */
  constructor(details: OperatorDetails, topUpUrl: string | null) {
    this.details = Object.keys(details).length === 0 ? null : details;
    this.#topUpUrl = topUpUrl;
  }

  /** `Acme (help@acme.example)`, or the part of it that is known. */
  get who(): string {
    const { name = "this gateway's operator", contact } = this.details ?? {};
    return contact === undefined ? name : `${name} (${contact})`;
  }

  /** Where money can be added to this account: TOP_UP_URL with `account_id` in its query. Null if there is no such page. */
  topUpOf(accountId: string): string | null {
    if (this.#topUpUrl === null) return null;
    const [page = '', ...fragment] = this.#topUpUrl.split('#');
    return [`${page}${page.includes('?') ? '&' : '?'}account_id=${accountId}`, ...fragment].join('#');
  }
}
