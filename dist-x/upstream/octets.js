/** 1 for each octet that a token, such as a header name, may contain (RFC 9110 section 5.6.2). */
export const TOKEN = new Uint8Array(256);
/** 1 for each octet that a header value may contain (RFC 9110 section 5.5). */
export const FIELD_TEXT = new Uint8Array(256);
for (const char of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
    TOKEN[char.charCodeAt(0)] = 1;
}
// Tab, space, visible ASCII and obs-text; no other control characters.
FIELD_TEXT[0x09] = 1;
for (let octet = 0x20; octet < 0x100; octet++)
    FIELD_TEXT[octet] = octet === 0x7f ? 0 : 1;
export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SPACE = 0x20;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;
//# sourceMappingURL=octets.js.map