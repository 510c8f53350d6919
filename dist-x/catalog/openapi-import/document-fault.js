/** A document as a whole cannot be taken over. The message is for its author. */
export class DocumentFault extends Error {
    /** Whether the body was JSON at all. */
    isJson;
    constructor(message, { isJson = true } = {}) {
        super(message);
        this.name = 'DocumentFault';
        this.isJson = isJson;
    }
}
//# sourceMappingURL=document-fault.js.map