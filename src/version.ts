/** The version in package.json, which is not beside the compiled code everywhere. test/routes/version.test.ts compares them. */
export const VERSION = '0.1.0';

/** The product's name, which is the title of each gateway's documents, tools and pages. */
export const PRODUCT = 'Tollgate';
