/** The document as a whole cannot be imported. The message is for its author. */
export class DocumentFault extends Error {
  /** Whether the body was JSON at all. */
  readonly isJson: boolean;

  constructor(message: string, { isJson = true }: { readonly isJson?: boolean } = {}) {
    super(message);
    this.name = 'DocumentFault';
    this.isJson = isJson;
  }
}
