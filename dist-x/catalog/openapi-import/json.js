export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
/** The object, or an empty one if the value is anything else. */
export const objectOf = (value) => (isObject(value) ? value : {});
export const listOf = (value) => (Array.isArray(value) ? value : []);
/** A member by a name that the document chose. `constructor` would otherwise be found on every object. */
export const memberOf = (value, name) => Object.hasOwn(value, name) ? value[name] : undefined;
/** Text that can be stored: JSON can spell a lone surrogate and U+0000, and Postgres takes neither. */
export const storableText = (text) => text.toWellFormed().replaceAll('\0', '');
/** Maximum characters of a path or a reference in a message; longer ones end with an ellipsis. */
const MAX_QUOTED = 200;
/** A piece of the document for a message. The document chooses its length, so it is cut. */
export function quoted(text) {
    const clean = storableText(text);
    return clean.length <= MAX_QUOTED ? clean : `${clean.slice(0, MAX_QUOTED).toWellFormed()}…`;
}
//# sourceMappingURL=json.js.map