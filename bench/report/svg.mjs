// @ts-check
// Makes SVG elements as strings.

/** @type {Record<string, string>} */
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** @param {string} text */
export const escapeXml = (text) => text.replace(/[&<>"]/g, (character) => entities[character] ?? character);

/** @typedef {Record<string, string | number>} Attributes */

/** @param {Attributes} attributes */
function attributeText(attributes) {
  // Two decimals: nobody sees less than a hundredth of a pixel.
  const value = (/** @type {string | number} */ one) => (typeof one === 'number' ? Number(one.toFixed(2)) : one);
  return Object.entries(attributes)
    .map(([name, one]) => ` ${name}="${escapeXml(String(value(one)))}"`)
    .join('');
}

/** @param {string} name @param {Attributes} attributes @param {readonly string[]} [children] */
export const element = (name, attributes, children) =>
  children === undefined
    ? `<${name}${attributeText(attributes)}/>`
    : `<${name}${attributeText(attributes)}>${children.join('')}</${name}>`;

/** @param {number} x @param {number} y @param {string} content @param {Attributes} [attributes] */
export const text = (x, y, content, attributes = {}) => element('text', { x, y, ...attributes }, [escapeXml(content)]);

/** @param {number} x @param {number} y @param {number} width @param {number} height @param {Attributes} attributes */
export const rectangle = (x, y, width, height, attributes) => element('rect', { x, y, width, height, ...attributes });

/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {Attributes} attributes */
export const line = (x1, y1, x2, y2, attributes) => element('line', { x1, y1, x2, y2, ...attributes });
